// SPDX-License-Identifier: Apache-2.0
// See new_file.h. The temporary name holds the process id; that and O_EXCL keep two writers of one
// path apart, of which the last to finish wins.
#include "base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/io_error.h"
#include "base/signals.h"

namespace gen {
namespace {

constexpr int kMaxTries = 100;
constexpr size_t kMaxAtOnce = size_t{1} << 30;  // write() takes at most 2 GiB
constexpr mode_t kOwner = S_IRUSR | S_IWUSR;
constexpr mode_t kEverybody = kOwner | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
constexpr mode_t kPermissions = S_IRWXU | S_IRWXG | S_IRWXO;

/// The path that a link names which leads to no file yet.
Result<std::string> behind_links(const std::string& path) {
  std::filesystem::path at = path;
  constexpr int kMostLinks = 40;
  for (int links = 0; links <= kMostLinks; ++links) {
    std::error_code failure;
    if (!std::filesystem::is_symlink(at, failure)) return at.string();
    const std::filesystem::path to = std::filesystem::read_symlink(at, failure);
    if (failure) return io_error("write", path, failure.value());
    at = at.parent_path() / to;
  }
  return io_error("write", path, ELOOP);
}

}  // namespace

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      descriptor_(std::exchange(other.descriptor_, -1)),
      replaced_(other.replaced_) {}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  NewFile moved(std::move(other));
  std::swap(path_, moved.path_);
  std::swap(temporary_, moved.temporary_);
  std::swap(descriptor_, moved.descriptor_);
  std::swap(replaced_, moved.replaced_);
  return *this;
}

NewFile::~NewFile() { discard(); }

void NewFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Result<NewFile> NewFile::create(const std::string& path, Access access) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return error(Code::kIo, "cannot write '%.600s': not a file name", path.c_str());
  }
  NewFile file;
  file.path_ = path;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    GEN_ASSIGN(file.path_, behind_links(path));
  } else {
    if (S_ISDIR(info.st_mode)) return io_error("write", path, EISDIR);
    if (!S_ISREG(info.st_mode)) return io_error("write", path, ENODEV);
    std::error_code failure;
    const std::filesystem::path target = std::filesystem::canonical(path, failure);
    if (failure) return io_error("write", path, failure.value());
    file.path_ = target.string();
    file.replaced_ = {info.st_mode & kPermissions, info.st_gid};
  }
  const bool narrow = access == Access::kPrivate || file.replaced_.has_value();
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    std::string name =
        file.path_ + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".part";
    file.descriptor_ =
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, narrow ? kOwner : kEverybody);
    if (file.descriptor_ >= 0) {
      file.temporary_ = std::move(name);  // without memory of its own: the file is there already
      return file;
    }
    if (errno != EEXIST) return io_error("write", path, errno);
  }
  return io_error("write", path, EEXIST);
}

Status NewFile::write(std::span<const std::byte> bytes) {
  const SizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMaxAtOnce));
    if (done < 0) {
      if (errno == EINTR) continue;
      return io_error("write", path_, errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return {};
}

// The group first: a group that cannot be kept must not get the rights that another one had.
Status NewFile::keep_permissions() noexcept {
  struct stat own {};
  if (::fstat(descriptor_, &own) != 0) return io_error("write", path_, errno);
  mode_t mode = replaced_->mode;
  if (own.st_gid != replaced_->group &&
      ::fchown(descriptor_, static_cast<uid_t>(-1), replaced_->group) != 0) {
    mode &= ~mode_t{S_IRWXG} | (mode & S_IRWXO) << 3;
  }
  if ((own.st_mode & kPermissions) == mode) return {};
  return ::fchmod(descriptor_, mode) == 0 ? Status() : io_error("write", path_, errno);
}

Status NewFile::finish() {
  if (replaced_.has_value()) GEN_TRY(keep_permissions());
  if (::fsync(descriptor_) != 0) return io_error("write", path_, errno);
  // Some file systems tell of a full disk only now.
  if (::close(std::exchange(descriptor_, -1)) != 0) return io_error("write", path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error("write", path_, errno);
  temporary_.clear();
  return {};
}

Status write_file(const std::string& path, std::string_view text) {
  GEN_ASSIGN(NewFile file, NewFile::create(path));
  GEN_TRY(file.write(std::as_bytes(std::span(text))));
  return file.finish();
}

}  // namespace gen
