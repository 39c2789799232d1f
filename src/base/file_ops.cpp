// SPDX-License-Identifier: Apache-2.0
// The system's files. See file_ops.h.
#include "base/file_ops.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <type_traits>

#include "base/io_error.h"
#include "base/signals.h"

namespace gen {
namespace {

constexpr size_t kStep = size_t{1} << 30;  // a call moves at most 2 GiB
constexpr mode_t kOwnFile = 0600;
constexpr mode_t kOwnFolder = 0700;

Status check_name(const std::string& path) {
  if (!path.empty() && path.find('\0') == std::string::npos) return {};
  return error(Code::kIo, "cannot open '%.600s': not a file name", path.c_str());
}

/// Why a file that is opened without following a link could not be.
Status open_error(const char* verb, const std::string& path, int number) noexcept {
  struct stat info {};
  if ((number == ELOOP || number == ENOTDIR) && ::lstat(path.c_str(), &info) == 0 &&
      S_ISLNK(info.st_mode)) {
    return error(Code::kIo, "cannot %s '%.600s': is a symbolic link", verb, path.c_str());
  }
  return io_error(verb, path, number);
}

class SystemFiles final : public FileOps {
 public:
  Result<int> create(const std::string& path) override {
    GEN_TRY(check_name(path));
    const int file =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kOwnFile);
    if (file < 0) return open_error("write", path, errno);
    return file;
  }

  Result<int> open(const std::string& path) override {
    GEN_TRY(check_name(path));
    // Without O_NONBLOCK, opening a pipe would wait for its writer before it can be refused.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0) return open_error("open", path, errno);
    struct stat info {};
    int failure = ::fstat(file, &info) != 0 ? errno : 0;
    if (failure == 0 && S_ISDIR(info.st_mode)) failure = EISDIR;
    if (failure == 0 && !S_ISREG(info.st_mode)) failure = ENODEV;
    if (failure == 0) return file;
    ::close(file);
    return io_error("open", path, failure);
  }

  Result<uint64_t> size(int file, const std::string& path) override {
    struct stat info {};
    if (::fstat(file, &info) != 0) return io_error("read", path, errno);
    return static_cast<uint64_t>(info.st_size);
  }

  Status read(int file, uint64_t offset, std::span<std::byte> to,
              const std::string& path) override {
    const size_t wanted = to.size();
    while (!to.empty()) {
      const ssize_t got =
          ::pread(file, to.data(), std::min(to.size(), kStep), static_cast<off_t>(offset));
      if (got < 0) {
        if (errno == EINTR) continue;
        return io_error("read", path, errno);
      }
      if (got == 0) {
        return error(Code::kIo, "cannot read '%.600s': it ended after %zu of %zu bytes",
                     path.c_str(), wanted - to.size(), wanted);
      }
      to = to.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
    return {};
  }

  void will_read(int file, uint64_t offset, size_t bytes) noexcept override {
    static_cast<void>(::posix_fadvise(file, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                                      POSIX_FADV_WILLNEED));
  }

  Status write(int file, uint64_t offset, std::span<const std::byte> bytes,
               const std::string& path) override {
    const SizeSignalHeld held;
    while (!bytes.empty()) {
      const ssize_t done =
          ::pwrite(file, bytes.data(), std::min(bytes.size(), kStep), static_cast<off_t>(offset));
      if (done < 0) {
        if (errno == EINTR) continue;
        return io_error("write", path, errno);
      }
      bytes = bytes.subspan(static_cast<size_t>(done));
      offset += static_cast<uint64_t>(done);
    }
    return {};
  }

  Status sync(int file, const std::string& path) override {
    return ::fsync(file) == 0 ? Status() : io_error("write", path, errno);
  }
  Status close(int file, const std::string& path) override {
    return ::close(file) == 0 ? Status() : io_error("write", path, errno);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return std::rename(from.c_str(), to.c_str()) == 0 ? Status() : io_error("write", to, errno);
  }
  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return io_error("remove", path, errno);
  }

  Status make_folder(const std::string& path) override {
    GEN_TRY(check_name(path));
    return ::mkdir(path.c_str(), kOwnFolder) == 0 ? Status() : io_error("make", path, errno);
  }

  Result<std::string> make_temporary_folder() override {
    std::error_code failure;
    std::string path = std::filesystem::temp_directory_path(failure).string();
    if (failure) return io_error("make", "a temporary folder", failure.value());
    path += "/generate-kv-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return io_error("make", path, errno);
    return path;
  }

  Status remove_folder(const std::string& path) override {
    if (::rmdir(path.c_str()) == 0) return {};
    if (errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) return {};
    return io_error("remove", path, errno);
  }

  Status sync_folder(const std::string& path) override {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return io_error("open", path, errno);
    const int failure = ::fsync(folder) != 0 ? errno : 0;
    ::close(folder);
    return failure == 0 ? Status() : io_error("write", path, failure);
  }

  Result<int> lock_folder(const std::string& path) override {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0) return open_error("open", path, errno);
    if (::flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
    const int failure = errno;
    ::close(folder);
    if (failure == EWOULDBLOCK) {
      return error(Code::kBusy, "'%.600s' is in use by another cache", path.c_str());
    }
    return io_error("lock", path, failure);
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (folder == nullptr) return io_error("open", path, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(folder.get())) {
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
      errno = 0;
    }
    if (errno != 0) return io_error("read", path, errno);
    std::sort(names.begin(), names.end());
    return names;
  }
};

// Constant-initialised and trivially destroyed: no code runs at load or at exit.
constinit SystemFiles disk;
static_assert(std::is_trivially_destructible_v<SystemFiles>);

}  // namespace

FileOps& system_files() noexcept { return disk; }

Result<OpenFile> OpenFile::create(FileOps& files, const std::string& path) {
  OpenFile made(files, -1, path);
  GEN_ASSIGN(made.file_, files.create(path));
  return made;
}

Result<OpenFile> OpenFile::open(FileOps& files, const std::string& path) {
  OpenFile made(files, -1, path);
  GEN_ASSIGN(made.file_, files.open(path));
  return made;
}

Result<OpenFile> OpenFile::lock(FileOps& files, const std::string& path) {
  OpenFile made(files, -1, path);
  GEN_ASSIGN(made.file_, files.lock_folder(path));
  return made;
}

Status OpenFile::close() noexcept {
  if (file_ < 0) return {};
  return files_->close(std::exchange(file_, -1), path_);
}

}  // namespace gen
