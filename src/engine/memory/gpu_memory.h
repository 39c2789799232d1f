// SPDX-License-Identifier: Apache-2.0
// Device memory for code that has no engine: allocated by an allocator, written and read by the
// allocator's copies, and appended to on the caller's streams. Other code must not dereference its
// addresses.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/allocator.h"
#include "base/status.h"
#include "engine/memory/counted_append.h"

namespace gen::engine {

/// Threads: any.
class GpuAllocator {
 public:
  virtual ~GpuAllocator() = default;
  /// kOutOfMemory, kDevice.
  virtual Status allocate(size_t bytes, void** out) = 0;
  virtual void release(void* at) noexcept = 0;
  /// Synchronous. kDevice; the target is then undefined.
  virtual Status copy_up(void* to, const void* from, size_t bytes) = 0;
  virtual Status copy_down(void* to, const void* from, size_t bytes) = 0;
  virtual Status copy_across(void* to, const void* from, size_t bytes) = 0;
  /// Enqueued on a stream of the device, or synchronous in host memory: append_on_device().
  virtual Status append(const CountedAppend& append, void* stream) = 0;
  /// The message of the host's allocator functions; null if there is none.
  [[nodiscard]] virtual std::shared_ptr<Callbacks> callbacks() const noexcept { return nullptr; }
};

/// An allocation of device memory, freed by the destructor. The allocator must outlive it.
class GpuBuffer {
 public:
  GpuBuffer() noexcept = default;
  GpuBuffer(GpuBuffer&& other) noexcept { swap(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept {
    GpuBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;
  ~GpuBuffer() {
    if (at_ != nullptr) allocator_->release(at_);
  }

  static Result<GpuBuffer> allocate(GpuAllocator& allocator, size_t bytes) {
    GpuBuffer made;
    GEN_TRY(allocator.allocate(bytes, &made.at_));
    made.allocator_ = &allocator;
    made.bytes_ = bytes;
    return made;
  }

  [[nodiscard]] void* at(size_t offset = 0) const noexcept {
    return static_cast<std::byte*>(at_) + offset;
  }
  [[nodiscard]] size_t size() const noexcept { return bytes_; }

 private:
  void swap(GpuBuffer& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
  }

  GpuAllocator* allocator_ = nullptr;
  void* at_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gen::engine
