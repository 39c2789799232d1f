// SPDX-License-Identifier: Apache-2.0
// A read-only file in memory, mapped or read. Used by the GGUF reader and the tokenizer loader.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

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

  /// Errors: kIo naming the path and the reason ("no such file", "is a directory", …).
  static Result<MappedFile> open(const std::string& path, Mode mode = Mode::kMap);

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  /// Tells the kernel that a range will not be read again (mapped files only; a hint, pages come
  /// back on access).
  void drop_pages(size_t offset, size_t length) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
};

}  // namespace gen
