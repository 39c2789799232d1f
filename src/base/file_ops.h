// SPDX-License-Identifier: Apache-2.0
// File calls through a table, for caches that keep their older part on a disk: tests let each call
// fail in turn. A file is written, synced and renamed into its place by its user; one that only has
// to appear whole is new_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace gen {

/// Failures are kIo and name the path and the reason. Threads: any.
class FileOps {
 public:
  /// Opens an empty file for reading and writing, accessible to this user only. An existing file is
  /// truncated; a link is not followed.
  virtual Result<int> create(const std::string& path) = 0;
  /// For reading. Regular files only, and no link.
  virtual Result<int> open(const std::string& path) = 0;
  virtual Result<uint64_t> size(int file, const std::string& path) = 0;
  /// Reads or writes all of the bytes, or fails. Any number of threads at once.
  virtual Status read(int file, uint64_t offset, std::span<std::byte> to,
                      const std::string& path) = 0;
  /// So many bytes will be read soon: the system may begin now. Only advice.
  virtual void will_read(int file, uint64_t offset, size_t bytes) noexcept = 0;
  virtual Status write(int file, uint64_t offset, std::span<const std::byte> bytes,
                       const std::string& path) = 0;
  /// Returns when what was written is on the disk.
  virtual Status sync(int file, const std::string& path) = 0;
  /// The descriptor is closed afterwards, whatever is returned.
  virtual Status close(int file, const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Succeeds if there is no such file.
  virtual Status remove(const std::string& path) = 0;

  /// Creates a folder, accessible to this user only; kIo if anything of that name exists.
  virtual Status make_folder(const std::string& path) = 0;
  /// Creates one with a unique name where the system keeps temporary files.
  virtual Result<std::string> make_temporary_folder() = 0;
  /// Succeeds if it does not exist, or if it is not empty.
  virtual Status remove_folder(const std::string& path) = 0;
  /// Returns when creations, renames and removals in it are on the disk.
  virtual Status sync_folder(const std::string& path) = 0;
  /// Locks the folder until the descriptor is closed; kBusy if it is locked already. A link is not
  /// followed.
  virtual Result<int> lock_folder(const std::string& path) = 0;
  /// Names in a folder, in order.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;

 protected:
  ~FileOps() = default;  // own one by its own type
};

/// The system's files. The object is stateless and lives for ever.
FileOps& system_files() noexcept;

/// A descriptor of a table; closed at the end. Movable only.
class OpenFile {
 public:
  OpenFile() noexcept = default;
  OpenFile(FileOps& files, int file, std::string path)
      : files_(&files), file_(file), path_(std::move(path)) {}
  OpenFile(OpenFile&& other) noexcept { swap(other); }
  OpenFile& operator=(OpenFile&& other) noexcept {
    OpenFile moved(std::move(other));
    swap(moved);
    return *this;
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { static_cast<void>(close()); }

  static Result<OpenFile> create(FileOps& files, const std::string& path);
  static Result<OpenFile> open(FileOps& files, const std::string& path);
  /// FileOps::lock_folder.
  static Result<OpenFile> lock(FileOps& files, const std::string& path);

  [[nodiscard]] Result<uint64_t> size() const { return files_->size(file_, path_); }
  Status read(uint64_t offset, std::span<std::byte> to) const {
    return files_->read(file_, offset, to, path_);
  }
  void will_read(uint64_t offset, size_t bytes) const noexcept {
    files_->will_read(file_, offset, bytes);
  }
  Status write(uint64_t offset, std::span<const std::byte> bytes) const {
    return files_->write(file_, offset, bytes, path_);
  }
  [[nodiscard]] Status sync() const { return files_->sync(file_, path_); }
  /// Nothing may be called afterwards. Some file systems report a full disk only here.
  Status close() noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void swap(OpenFile& other) noexcept {
    std::swap(files_, other.files_);
    std::swap(file_, other.file_);
    std::swap(path_, other.path_);
  }

  FileOps* files_ = nullptr;
  int file_ = -1;
  std::string path_;
};

}  // namespace gen
