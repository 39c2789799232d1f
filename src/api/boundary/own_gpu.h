// SPDX-License-Identifier: Apache-2.0
// The library's own allocators of GPU memory: they count the allocations of an underlying table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "engine/memory/gpu_allocator.h"
#include <generate/gpu.h>

namespace gen::api {

/// The caller gets its table. Threads: any.
class OwnGpu {
 public:
  explicit OwnGpu(std::shared_ptr<const engine::GpuTable> behind);
  OwnGpu(const OwnGpu&) = delete;
  OwnGpu& operator=(const OwnGpu&) = delete;

  /// Null if the library did not make the table.
  static OwnGpu* of(const gen_gpu_allocator& table) noexcept;

  gen_gpu_allocator table = {};
  std::atomic<int64_t> owners = 1;  // the caller, and each OwnGpuRef
  std::atomic<size_t> bytes = 0;
  std::atomic<size_t> peak = 0;
  [[nodiscard]] size_t pieces();

 private:
  using Take = int32_t (*)(void* user, size_t bytes, void** out);
  using GiveBack = int32_t (*)(void* user, void* ptr);
  static gen_status allocate(void* user, size_t bytes, void** out);
  static gen_status release(void* user, void* ptr);
  static gen_status copy(void* user, void* to, const void* from, size_t bytes, int32_t kind);
  static gen_status allocate_pinned(void* user, size_t bytes, void** out);
  static gen_status release_pinned(void* user, void* ptr);
  gen_status take(Take from, GiveBack back, size_t bytes, void** out);
  gen_status give_back(GiveBack to, void* ptr);

  const std::shared_ptr<const engine::GpuTable> behind_;
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
};

/// Keeps an allocator of the library alive while it is used; does nothing for any other table.
class OwnGpuRef {
 public:
  explicit OwnGpuRef(OwnGpu* own) noexcept : own_(own) {
    if (own_ != nullptr) ++own_->owners;
  }
  ~OwnGpuRef() { drop(own_); }
  OwnGpuRef(const OwnGpuRef&) = delete;
  OwnGpuRef& operator=(const OwnGpuRef&) = delete;

  static void drop(OwnGpu* own) {
    if (own != nullptr && own->owners.fetch_sub(1) == 1) delete own;
  }

 private:
  OwnGpu* own_;
};

/// Host memory presented as device -1.
std::shared_ptr<const engine::GpuTable> host_gpu_table() noexcept;

}  // namespace gen::api
