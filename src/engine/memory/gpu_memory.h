// SPDX-License-Identifier: Apache-2.0
// Memory of a device for what works without an engine: taken from an allocator, written and read by
// its copies, and appended to on the caller's streams. An address is a number to everyone else.
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
  /// Complete when they return. kDevice; the target may then hold anything.
  virtual Status copy_up(void* to, const void* from, size_t bytes) = 0;
  virtual Status copy_down(void* to, const void* from, size_t bytes) = 0;
  virtual Status copy_across(void* to, const void* from, size_t bytes) = 0;
  /// Enqueued on a stream of the device, or done at once: append_on_device().
  virtual Status append(const CountedAppend& append, void* stream) = 0;
  /// Of the host's functions behind it; null if there are none.
  [[nodiscard]] virtual std::shared_ptr<Callbacks> callbacks() const noexcept { return nullptr; }
};

/// A piece of such memory, given back at its end. The allocator must outlive it.
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
