// SPDX-License-Identifier: Apache-2.0
// The table through which every byte of device memory is asked for: gen_gpu_allocator of the C API,
// member by member. A table of an older caller ends sooner: read its members through the functions
// below.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::engine {

/// Statuses are those of gen_status. Threads: any.
struct GpuTable {
  uint32_t struct_size;
  void* user;
  int32_t (*allocate)(void* user, size_t bytes, void** out);
  int32_t (*release)(void* user, void* ptr);
  /// Complete when it returns. kind: 0 host to device, 1 device to host, 2 device to device.
  int32_t (*copy)(void* user, void* dst, const void* src, size_t bytes, int32_t kind);
  int32_t device;  // -1: host memory that poses as a device
  /// Host memory that a device reaches without a detour. May be null: then the heap's is used.
  int32_t (*allocate_pinned)(void* user, size_t bytes, void** out);
  int32_t (*release_pinned)(void* user, void* ptr);
};

/// The three functions that no table lacks.
inline bool gpu_allocator_complete(const GpuTable& table) noexcept {
  return table.struct_size >= offsetof(GpuTable, device) && table.allocate != nullptr &&
         table.release != nullptr && table.copy != nullptr;
}
/// -1 of a table that does not say.
inline int32_t gpu_allocator_device(const GpuTable& table) noexcept {
  return table.struct_size >= offsetof(GpuTable, allocate_pinned) ? table.device : -1;
}
inline bool gpu_allocator_pins(const GpuTable& table) noexcept {
  return table.struct_size >= sizeof(GpuTable) && table.allocate_pinned != nullptr &&
         table.release_pinned != nullptr;
}

}  // namespace gen::engine
