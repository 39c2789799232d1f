// SPDX-License-Identifier: Apache-2.0
// A read-only file in memory, mapped or read. Used by the GGUF reader and the tokenizer loader.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <ctime>
#include <span>
#include <string>

#include "base/status.h"

struct stat;

namespace gen {

/// Holds the bytes of one file. Movable only. Threads: immutable after open.
class MappedFile {
 public:
  enum class Mode { kMap, kRead };

  MappedFile() noexcept = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Errors: kIo naming the path and the reason ("no such file", "is a directory", …); a file that
  /// is written to while it is read is one, too, as far as its size and time tell.
  static Result<MappedFile> open(const std::string& path, Mode mode = Mode::kMap);

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  /// False: the file was read into memory.
  [[nodiscard]] bool is_mapped() const noexcept { return mapped_; }
  /// kIo if a mapped file has been written to or shortened since it was opened, as far as its size
  /// and time tell; a file that replaced it does not matter.
  [[nodiscard]] Status check_unchanged() const;
  /// Tells the kernel that a range will not be read again (mapped files only; a hint, pages come
  /// back on access).
  void drop_pages(size_t offset, size_t length) const noexcept;

 private:
  /// Which file it was, and when it was written last.
  struct Origin {
    std::string path;
    dev_t device = 0;
    ino_t number = 0;
    off_t size = 0;
    timespec written{};
  };

  [[nodiscard]] Status check_same(const struct stat& now) const;

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Origin origin_;
  bool mapped_ = false;
};

/// A hint that this thread will soon read all of `bytes`: missing pages of a mapping are loaded at
/// once, not one by one. Does nothing where the system has no such hint.
void fault_in(std::span<const std::byte> bytes) noexcept;

}  // namespace gen
