// SPDX-License-Identifier: Apache-2.0
// See own_gpu.h.
#include "api/boundary/own_gpu.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace gen::api {
namespace {

gen_status host_allocate(void*, size_t bytes, void** out) {
  constexpr size_t kAlign = 256;
  if (bytes > SIZE_MAX - kAlign) return GEN_ERROR_OUT_OF_MEMORY;
  *out = std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  return *out != nullptr ? GEN_OK : GEN_ERROR_OUT_OF_MEMORY;
}

gen_status host_release(void*, void* ptr) {
  std::free(ptr);
  return GEN_OK;
}

gen_status host_copy(void*, void* to, const void* from, size_t bytes, int32_t kind) {
  if (kind < GEN_GPU_COPY_TO_DEVICE || kind > GEN_GPU_COPY_ON_DEVICE) {
    return GEN_ERROR_INVALID_ARGUMENT;
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
  return GEN_OK;
}

constexpr engine::GpuTable kHost = {sizeof(engine::GpuTable),
                                    nullptr,
                                    host_allocate,
                                    host_release,
                                    host_copy,
                                    -1,
                                    host_allocate,
                                    host_release};

OwnGpu& self(void* user) { return *static_cast<OwnGpu*>(user); }

}  // namespace

std::shared_ptr<const engine::GpuTable> host_gpu_table() noexcept {
  return {std::shared_ptr<void>(), &kHost};
}

OwnGpu::OwnGpu(std::shared_ptr<const engine::GpuTable> behind) : behind_(std::move(behind)) {
  table.struct_size = sizeof(gen_gpu_allocator);
  table.user = this;
  table.allocate = allocate;
  table.release = release;
  table.copy = copy;
  table.device = engine::gpu_allocator_device(*behind_);
  table.allocate_pinned = allocate_pinned;
  table.release_pinned = release_pinned;
}

OwnGpu* OwnGpu::of(const gen_gpu_allocator& table) noexcept {
  return table.allocate == allocate ? static_cast<OwnGpu*>(table.user) : nullptr;
}

size_t OwnGpu::pieces() {
  const std::lock_guard lock(mutex_);
  return sizes_.size();
}

gen_status OwnGpu::take(Take from, GiveBack back, size_t wanted, void** out) {
  *out = nullptr;
  void* made = nullptr;
  if (const int32_t failed = from(behind_->user, wanted, &made); failed != GEN_OK) return failed;
  try {
    const std::lock_guard lock(mutex_);
    sizes_.emplace(made, wanted);
    const size_t now = bytes += wanted;
    if (peak < now) peak = now;
  } catch (const std::bad_alloc&) {
    static_cast<void>(back(behind_->user, made));
    return GEN_ERROR_OUT_OF_MEMORY;
  }
  *out = made;
  return GEN_OK;
}

gen_status OwnGpu::give_back(GiveBack to, void* ptr) {
  if (ptr == nullptr) return GEN_OK;
  {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(ptr);
    if (found == sizes_.end()) return GEN_ERROR_INVALID_ARGUMENT;
    bytes -= found->second;
    sizes_.erase(found);
  }
  return to(behind_->user, ptr);
}

gen_status OwnGpu::allocate(void* user, size_t bytes, void** out) {
  const engine::GpuTable& of = *self(user).behind_;
  return self(user).take(of.allocate, of.release, bytes, out);
}

gen_status OwnGpu::release(void* user, void* ptr) {
  return self(user).give_back(self(user).behind_->release, ptr);
}

gen_status OwnGpu::copy(void* user, void* to, const void* from, size_t bytes, int32_t kind) {
  const engine::GpuTable& of = *self(user).behind_;
  return of.copy(of.user, to, from, bytes, kind);
}

gen_status OwnGpu::allocate_pinned(void* user, size_t bytes, void** out) {
  const engine::GpuTable& of = *self(user).behind_;
  return self(user).take(of.allocate_pinned, of.release_pinned, bytes, out);
}

gen_status OwnGpu::release_pinned(void* user, void* ptr) {
  return self(user).give_back(self(user).behind_->release_pinned, ptr);
}

}  // namespace gen::api
