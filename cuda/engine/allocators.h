// SPDX-License-Identifier: Apache-2.0
// The engine's own allocator as a table (engine/memory/gpu_allocator.h): device memory from a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "cuda/device/runtime.h"
#include "cuda/engine/device_guard.h"
#include "engine/memory/gpu_allocator.h"

namespace gen::cuda {

/// Device memory from a pool, pinned memory from the driver. Allocations may be used on any stream
/// at once; freed memory must not be in use by any. Threads: any.
class PoolAllocator {
 public:
  /// kDevice and kUnsupported, naming the device.
  static Result<std::unique_ptr<PoolAllocator>> create(int32_t device);
  ~PoolAllocator();
  PoolAllocator(const PoolAllocator&) = delete;
  PoolAllocator& operator=(const PoolAllocator&) = delete;

  /// Lives as long as the allocator.
  [[nodiscard]] const engine::GpuTable& table() const noexcept { return table_; }

 private:
  explicit PoolAllocator(int32_t device) noexcept : device_(device) {}
  static int32_t allocate(void* user, size_t bytes, void** out);
  static int32_t release(void* user, void* at);
  static int32_t copy(void* user, void* to, const void* from, size_t bytes, int32_t kind);
  static int32_t allocate_pinned(void* user, size_t bytes, void** out);
  static int32_t release_pinned(void* user, void* at);

  DeviceContext device_;
  engine::GpuTable table_ = {};
  device::Pool pool_ = nullptr;
  device::Stream stream_ = nullptr;
};

}  // namespace gen::cuda
