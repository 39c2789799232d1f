// SPDX-License-Identifier: Apache-2.0
// Host memory through an injectable table, and an owning buffer on top of it. Weights, workspaces
// and caches come through here, so tests can count and fail every allocation. Threads: an allocator
// is called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/callbacks.h"
#include "base/status.h"

namespace gen {

/// Interface to host memory. Implementations must be thread-safe and must not call the library.
class Allocator {
 public:
  /// `align` is a power of two. Returns kOutOfMemory (naming the size) on failure.
  virtual Status allocate(size_t bytes, size_t align, void** out) noexcept = 0;
  virtual void release(void* pointer, size_t bytes) noexcept = 0;
  /// The host's functions behind it; null if there are none.
  [[nodiscard]] virtual std::shared_ptr<Callbacks> callbacks() const noexcept { return nullptr; }

 protected:
  // Not virtual, so that the system's allocator is trivially destroyed; own one by its own type.
  ~Allocator() = default;
};

/// The process' heap. Large blocks come from the kernel untouched, so a big reservation costs
/// memory only where it is written. The object is stateless and lives for ever.
Allocator& system_allocator() noexcept;

/// Alignment of memory for numbers: a cache line, and the widest vector.
inline constexpr size_t kBufferAlign = 64;
/// Rounds up to the next multiple of it.
constexpr size_t align_up(size_t bytes) noexcept {
  return (bytes + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
}

/// Owns `size()` bytes from an allocator; movable only. Contents are not initialised.
class Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { reset(); }

  /// `allocator` must outlive the buffer.
  static Result<Buffer> allocate(Allocator& allocator, size_t bytes,
                                 size_t align = kBufferAlign) noexcept;
  /// For memory that a decode step reads from end to end. From 4 MiB up it is aligned to 2 MiB, and
  /// the kernel is asked for huge pages there: with small ones a third of such a step goes into
  /// address translation. Pages are still allocated as they are written.
  static Result<Buffer> allocate_large(Allocator& allocator, size_t bytes) noexcept;

  void reset() noexcept;
  /// Passes the memory to the caller, who releases it.
  [[nodiscard]] std::byte* detach() noexcept;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  template <typename T>
  [[nodiscard]] T* as() const noexcept {
    return reinterpret_cast<T*>(data_);
  }
  [[nodiscard]] size_t size() const noexcept { return size_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  Allocator* allocator_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace gen
