// SPDX-License-Identifier: Apache-2.0
// gpu.h of the C API: the adapter from a caller's table, and host memory that poses as a device.
#include <generate/gpu.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "api/boundary.h"
#include "api/c_gpu_allocator.h"
#include "api/caller_struct.h"
#include "api/host_call.h"

namespace gen::api {
namespace {

/// Its table is what the caller has. Counted: by the caller, and by each adapter over it.
struct HostGpu {
  gen_gpu_allocator table = {};
  std::atomic<int64_t> owners = 1;
  std::atomic<size_t> pieces = 0;
  std::atomic<size_t> bytes = 0;
  std::atomic<size_t> peak = 0;
};

/// Before each piece: its size, for the counters.
constexpr size_t kAlign = 256;

gen_status host_allocate(void* user, size_t bytes, void** out) {
  auto& self = *static_cast<HostGpu*>(user);
  *out = nullptr;
  if (bytes > SIZE_MAX - 2 * kAlign) return GEN_ERROR_OUT_OF_MEMORY;
  void* const made = std::aligned_alloc(kAlign, (bytes + 2 * kAlign - 1) / kAlign * kAlign);
  if (made == nullptr) return GEN_ERROR_OUT_OF_MEMORY;
  std::memcpy(made, &bytes, sizeof(bytes));
  *out = static_cast<std::byte*>(made) + kAlign;
  ++self.pieces;
  const size_t now = self.bytes += bytes;
  size_t peak = self.peak;
  while (peak < now && !self.peak.compare_exchange_weak(peak, now)) {
  }
  return GEN_OK;
}

gen_status host_release(void* user, void* ptr) {
  if (ptr == nullptr) return GEN_OK;
  auto& self = *static_cast<HostGpu*>(user);
  void* const made = static_cast<std::byte*>(ptr) - kAlign;
  size_t bytes = 0;
  std::memcpy(&bytes, made, sizeof(bytes));
  self.bytes -= bytes;
  --self.pieces;
  std::free(made);
  return GEN_OK;
}

gen_status host_copy(void*, void* to, const void* from, size_t bytes, int32_t kind) {
  if (kind < GEN_GPU_COPY_TO_DEVICE || kind > GEN_GPU_COPY_ON_DEVICE) {
    return GEN_ERROR_INVALID_ARGUMENT;
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
  return GEN_OK;
}

void drop(HostGpu* host) {
  if (host != nullptr && host->owners.fetch_sub(1) == 1) delete host;
}

/// Null for a table that is none of ours.
HostGpu* host_of(const gen_gpu_allocator& table) {
  return table.allocate == host_allocate ? static_cast<HostGpu*>(table.user) : nullptr;
}

class CGpuAllocator final : public engine::GpuAllocator {
 public:
  explicit CGpuAllocator(const gen_gpu_allocator& table) : table_(table), host_(host_of(table)) {
    if (host_ != nullptr) ++host_->owners;
  }
  ~CGpuAllocator() override { drop(host_); }
  CGpuAllocator(const CGpuAllocator&) = delete;
  CGpuAllocator& operator=(const CGpuAllocator&) = delete;

  Status allocate(size_t bytes, void** out) override {
    gen_status given = GEN_OK;
    void* made = nullptr;
    const Status thrown = host_status(*callbacks_, "allocate", [&]() -> Status {
      given = table_.allocate(table_.user, bytes, &made);
      return {};
    });
    if (!thrown.ok()) {
      return error(Code::kOutOfMemory, "the caller's %s, asked for %zu bytes", thrown.message(),
                   bytes);
    }
    if (given == GEN_OK && made != nullptr) {
      *out = made;
      return {};
    }
    const Code code = given == GEN_ERROR_DEVICE ? Code::kDevice : Code::kOutOfMemory;
    return error(code, "the caller's GPU allocator gave status %d for %zu bytes", given, bytes);
  }
  void release(void* at) noexcept override {
    host_notice(*callbacks_, [&] { static_cast<void>(table_.release(table_.user, at)); });
  }
  Status copy_up(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, GEN_GPU_COPY_TO_DEVICE);
  }
  Status copy_down(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, GEN_GPU_COPY_TO_HOST);
  }
  Status copy_across(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, GEN_GPU_COPY_ON_DEVICE);
  }
  [[nodiscard]] std::shared_ptr<Callbacks> callbacks() const noexcept override {
    return callbacks_;
  }

 private:
  Status copy(void* to, const void* from, size_t bytes, int32_t kind) {
    if (bytes == 0) return {};
    gen_status given = GEN_OK;
    const Status thrown = host_status(*callbacks_, "copy", [&]() -> Status {
      given = table_.copy(table_.user, to, from, bytes, kind);
      return {};
    });
    if (!thrown.ok()) {
      return error(Code::kDevice, "the caller's %s, given %zu bytes", thrown.message(), bytes);
    }
    if (given == GEN_OK) return {};
    return error(Code::kDevice, "the caller's GPU allocator gave status %d for a copy of %zu bytes",
                 given, bytes);
  }

  gen_gpu_allocator table_;
  HostGpu* host_;
  std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>();
};

}  // namespace

Result<std::shared_ptr<engine::GpuAllocator>> wrap_gpu_allocator(const gen_gpu_allocator* table) {
  GEN_TRY(not_null(table, "allocator"));
  GEN_ASSIGN(const gen_gpu_allocator ours, read_struct(*table));
  if (ours.allocate == nullptr || ours.release == nullptr || ours.copy == nullptr) {
    return error(Code::kInvalidArgument, "gen_gpu_allocator lacks allocate, release or copy");
  }
  return std::shared_ptr<engine::GpuAllocator>(std::make_shared<CGpuAllocator>(ours));
}

}  // namespace gen::api

gen_status gen_gpu_allocator_host(gen_gpu_allocator** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return gen::api::guard(error, [&]() -> gen::Status {
    GEN_TRY(gen::api::not_null(out, "out"));
    auto made = std::make_unique<gen::api::HostGpu>();
    made->table.struct_size = sizeof(gen_gpu_allocator);
    made->table.user = made.get();
    made->table.allocate = gen::api::host_allocate;
    made->table.release = gen::api::host_release;
    made->table.copy = gen::api::host_copy;
    made->table.device = -1;
    made->table.allocate_pinned = gen::api::host_allocate;
    made->table.release_pinned = gen::api::host_release;
    *out = &made.release()->table;
    return {};
  });
}

gen_status gen_gpu_allocator_counters(const gen_gpu_allocator* allocator, size_t* allocations,
                                      size_t* bytes, size_t* peak_bytes, gen_error* error) {
  for (size_t* number : {allocations, bytes, peak_bytes}) {
    if (number != nullptr) *number = 0;
  }
  return gen::api::guard(error, [&]() -> gen::Status {
    GEN_TRY(gen::api::not_null(allocator, "allocator"));
    const gen::api::HostGpu* const host = gen::api::host_of(*allocator);
    if (host == nullptr) {
      return {gen::Code::kInvalidArgument, "only allocators of the library count"};
    }
    if (allocations != nullptr) *allocations = host->pieces;
    if (bytes != nullptr) *bytes = host->bytes;
    if (peak_bytes != nullptr) *peak_bytes = host->peak;
    return {};
  });
}

void gen_gpu_allocator_release(gen_gpu_allocator* allocator) {
  if (allocator != nullptr) gen::api::drop(gen::api::host_of(*allocator));
}
