// SPDX-License-Identifier: Apache-2.0
// The table through which all device memory is allocated: gen_gpu_allocator of the C API, member by
// member. The table of an older caller may be shorter, so read its members through the functions
// below.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::engine {

/// Status codes are those of gen_status. Threads: any.
struct GpuTable {
  uint32_t struct_size;
  void* user;
  int32_t (*allocate)(void* user, size_t bytes, void** out);
  int32_t (*release)(void* user, void* ptr);
  /// Synchronous. kind: 0 host to device, 1 device to host, 2 device to device.
  int32_t (*copy)(void* user, void* dst, const void* src, size_t bytes, int32_t kind);
  int32_t device;  // -1: host memory that poses as a device
  /// Pinned host memory. May be null: heap memory is then used.
  int32_t (*allocate_pinned)(void* user, size_t bytes, void** out);
  int32_t (*release_pinned)(void* user, void* ptr);
};

/// Whether the three mandatory functions are set.
inline bool gpu_allocator_complete(const GpuTable& table) noexcept {
  return table.struct_size >= offsetof(GpuTable, device) && table.allocate != nullptr &&
         table.release != nullptr && table.copy != nullptr;
}
/// -1 if the table is too short to have the member.
inline int32_t gpu_allocator_device(const GpuTable& table) noexcept {
  return table.struct_size >= offsetof(GpuTable, allocate_pinned) ? table.device : -1;
}
inline bool gpu_allocator_pins(const GpuTable& table) noexcept {
  return table.struct_size >= sizeof(GpuTable) && table.allocate_pinned != nullptr &&
         table.release_pinned != nullptr;
}

}  // namespace gen::engine
