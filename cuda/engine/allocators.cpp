// SPDX-License-Identifier: Apache-2.0
// See allocators.h.
#include "cuda/engine/allocators.h"

#include "cuda/engine/device_queue.h"

namespace gen::cuda {
namespace {

constexpr auto kInvalid = static_cast<int32_t>(Code::kInvalidArgument);

/// Freed memory that the pool caches; the rest is returned to the device.
constexpr size_t kKeepBytes = size_t{64} << 20;

int32_t code_of(device::Error failed) noexcept {
  if (failed.ok()) return 0;
  return static_cast<int32_t>(failed == device::kOutOfMemory ? Code::kOutOfMemory : Code::kDevice);
}

}  // namespace

Result<std::unique_ptr<PoolAllocator>> PoolAllocator::create(int32_t device) {
  int count = 0;
  GEN_TRY(device_status(device::device_count(&count), "counting devices"));
  if (device < 0 || device >= count) {
    return error(Code::kInvalidArgument, "device %d of %d", device, count);
  }
  device::DeviceProperties properties;
  GEN_TRY(device_status(device::device_properties(device, &properties), "asking for a device"));
  if (!properties.pools) {
    return error(Code::kUnsupported, "device %d (%.200s) has no memory pools", device,
                 properties.name);
  }
  std::unique_ptr<PoolAllocator> made(new PoolAllocator(device));
  made->table_.struct_size = sizeof(engine::GpuTable);
  made->table_.user = made.get();
  made->table_.allocate = allocate;
  made->table_.release = release;
  made->table_.copy = copy;
  made->table_.device = device;
  made->table_.allocate_pinned = allocate_pinned;
  made->table_.release_pinned = release_pinned;
  const DeviceGuard guard(made->device_);
  GEN_TRY(device_status(device::stream_create(&made->stream_), "making a stream"));
  GEN_TRY(device_status(device::pool_create(kKeepBytes, &made->pool_), "making a memory pool"));
  return made;
}

PoolAllocator::~PoolAllocator() {
  const DeviceGuard guard(device_);
  if (stream_ != nullptr) static_cast<void>(device::stream_synchronize(stream_));
  if (pool_ != nullptr) static_cast<void>(device::pool_destroy(pool_));
  if (stream_ != nullptr) static_cast<void>(device::stream_destroy(stream_));
}

int32_t PoolAllocator::allocate(void* user, size_t bytes, void** out) {
  auto& self = *static_cast<PoolAllocator*>(user);
  const DeviceGuard guard(self.device_);
  void* made = nullptr;
  device::Error failed = device::malloc_async(bytes, self.pool_, self.stream_, &made);
  // Other streams may use it when the pool's own has passed it.
  if (!failed.ok()) return code_of(failed);
  failed = device::stream_synchronize(self.stream_);
  if (failed.ok()) {
    *out = made;
  } else {
    static_cast<void>(device::free_async(made, self.stream_));
  }
  return code_of(failed);
}

int32_t PoolAllocator::release(void* user, void* at) {
  auto& self = *static_cast<PoolAllocator*>(user);
  const DeviceGuard guard(self.device_);
  return code_of(device::free_async(at, self.stream_));
}

int32_t PoolAllocator::copy(void* user, void* to, const void* from, size_t bytes, int32_t kind) {
  auto& self = *static_cast<PoolAllocator*>(user);
  if (kind < 0 || kind > 2) return kInvalid;
  if (bytes == 0) return 0;
  const DeviceGuard guard(self.device_);
  constexpr device::CopyKind kKinds[] = {device::CopyKind::kHostToDevice,
                                         device::CopyKind::kDeviceToHost,
                                         device::CopyKind::kDeviceToDevice};
  const device::Error failed = device::copy_async(to, from, bytes, kKinds[kind], self.stream_);
  return code_of(failed.ok() ? device::stream_synchronize(self.stream_) : failed);
}

int32_t PoolAllocator::allocate_pinned(void* user, size_t bytes, void** out) {
  const DeviceGuard guard(static_cast<PoolAllocator*>(user)->device_);
  return code_of(device::host_malloc(bytes, out));
}

int32_t PoolAllocator::release_pinned(void* user, void* at) {
  const DeviceGuard guard(static_cast<PoolAllocator*>(user)->device_);
  return code_of(device::host_free(at));
}

}  // namespace gen::cuda
