// SPDX-License-Identifier: Apache-2.0
// Opening, mapping and reading. A mapping is private, so pages that a debugger writes stay ours,
// but what another process writes shows in it, and a file that is shortened while it is mapped
// raises SIGBUS on access, which is why kRead exists. See mapped_file.h.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "base/allocator.h"
#include "base/io_error.h"

namespace gen {
namespace {

constexpr std::align_val_t kAlign{kBufferAlign};

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

Status read_all(int fd, const std::string& path, std::byte* to, size_t size) noexcept {
  constexpr size_t kMaxRead = size_t{1} << 30;  // read() takes at most 2 GiB
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(fd, to + done, std::min(size - done, kMaxRead));
    if (got < 0) {
      if (errno == EINTR) continue;
      return io_error("read", path, errno);
    }
    if (got == 0) {
      return error(Code::kIo, "cannot read '%.600s': it ended after %zu of %zu bytes", path.c_str(),
                   done, size);
    }
    done += static_cast<size_t>(got);
  }
  return {};
}

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      origin_(std::move(other.origin_)),
      mapped_(std::exchange(other.mapped_, false)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(size_, moved.size_);
  std::swap(origin_, moved.origin_);
  std::swap(mapped_, moved.mapped_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  if (mapped_) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  } else {
    ::operator delete(const_cast<std::byte*>(data_), kAlign);
  }
}

Result<MappedFile> MappedFile::open(const std::string& path, Mode mode) {
  if (path.find('\0') != std::string::npos) {
    return error(Code::kIo, "cannot open '%.600s': the path holds a zero byte", path.c_str());
  }
  // Without O_NONBLOCK, opening a pipe would wait for its writer before it can be refused.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return io_error("open", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_error("open", path, errno);
  if (S_ISDIR(info.st_mode)) {
    return error(Code::kIo, "cannot open '%.600s': is a directory", path.c_str());
  }
  if (!S_ISREG(info.st_mode)) {
    return error(Code::kIo, "cannot open '%.600s': not a regular file", path.c_str());
  }
  if (!std::in_range<size_t>(info.st_size)) {
    return error(Code::kIo, "cannot open '%.600s': %lld bytes do not fit the address space",
                 path.c_str(), static_cast<long long>(info.st_size));
  }
  MappedFile result;
  result.origin_ = {path, info.st_dev, info.st_ino, info.st_size, info.st_mtim};
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return result;
  if (mode == Mode::kMap) {
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at == MAP_FAILED) return io_error("map", path, errno);
    result.data_ = static_cast<const std::byte*>(at);
    result.mapped_ = true;
    result.size_ = size;
    return result;
  }
  auto* at = static_cast<std::byte*>(::operator new(size, kAlign, std::nothrow));
  if (at == nullptr) {
    return error(Code::kOutOfMemory, "cannot allocate %zu bytes to read '%.600s'", size,
                 path.c_str());
  }
  result.data_ = at;
  result.size_ = size;
  GEN_TRY(read_all(file.get(), path, at, size));
  if (::fstat(file.get(), &info) != 0) return io_error("read", path, errno);
  GEN_TRY(result.check_same(info));
  return result;
}

Status MappedFile::check_same(const struct stat& now) const {
  if (now.st_size == origin_.size && now.st_mtim.tv_sec == origin_.written.tv_sec &&
      now.st_mtim.tv_nsec == origin_.written.tv_nsec) {
    return {};
  }
  return error(Code::kIo, "cannot read '%.600s': it was changed meanwhile", origin_.path.c_str());
}

Status MappedFile::check_unchanged() const {
  if (!mapped_) return {};
  struct stat now {};
  if (::stat(origin_.path.c_str(), &now) != 0) return {};  // what is mapped has no name any more
  if (now.st_dev != origin_.device || now.st_ino != origin_.number) return {};
  return check_same(now);
}

void MappedFile::drop_pages(size_t offset, size_t length) const noexcept {
  if (!mapped_ || offset >= size_) return;
  const long page_size = ::sysconf(_SC_PAGESIZE);
  if (page_size <= 0) return;
  // Only pages that lie wholly in the range: a neighbour on a shared page may still be wanted.
  const auto page = static_cast<size_t>(page_size);
  const size_t end = offset + std::min(length, size_ - offset);
  const size_t first = (offset + page - 1) / page * page;
  const size_t last = end == size_ ? end : end / page * page;
  if (first >= last) return;
  ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

void fault_in(std::span<const std::byte> bytes) noexcept {
#ifdef MADV_POPULATE_READ
  const long page_size = ::sysconf(_SC_PAGESIZE);
  if (page_size <= 0 || bytes.empty()) return;
  const size_t before = reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<size_t>(page_size);
  ::madvise(const_cast<std::byte*>(bytes.data()) - before, bytes.size() + before,
            MADV_POPULATE_READ);
#else
  static_cast<void>(bytes);
#endif
}

}  // namespace gen
