// SPDX-License-Identifier: Apache-2.0
// gpu.h of the C API: the library's own allocators of GPU memory.
#include <generate/gpu.h>

#include "api/boundary/boundary.h"
#include "api/boundary/own_gpu.h"
#include "engine/backend/registry.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OwnGpu;

}  // namespace

gen_status gen_gpu_allocator_host(gen_gpu_allocator** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = &(new OwnGpu(gen::api::host_gpu_table()))->table;
    return {};
  });
}

gen_status gen_gpu_allocator_cuda(int32_t device, gen_gpu_allocator** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto* row, gen::engine::engine_row("cuda"));
    if (const char* reason = row->why_not(); reason != nullptr) {
      return gen::error(Code::kUnsupported, "backend %s: %s", row->name, reason);
    }
    if (const int32_t count = row->device_count(); device < 0 || device >= count) {
      return gen::error(Code::kOutOfRange, "device %d of backend %s, which has %d", device,
                        row->name, count);
    }
    GEN_ASSIGN(auto table, row->gpu_allocator(device));
    *out = &(new OwnGpu(std::move(table)))->table;
    return {};
  });
}

gen_status gen_gpu_allocator_counters(const gen_gpu_allocator* allocator, size_t* allocations,
                                      size_t* bytes, size_t* peak_bytes, gen_error* error) {
  for (size_t* number : {allocations, bytes, peak_bytes}) {
    if (number != nullptr) *number = 0;
  }
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(allocator, "allocator"));
    OwnGpu* const own = OwnGpu::of(*allocator);
    if (own == nullptr) return {Code::kInvalidArgument, "only allocators of the library count"};
    if (allocations != nullptr) *allocations = own->pieces();
    if (bytes != nullptr) *bytes = own->bytes;
    if (peak_bytes != nullptr) *peak_bytes = own->peak;
    return {};
  });
}

void gen_gpu_allocator_release(gen_gpu_allocator* allocator) {
  if (allocator != nullptr) gen::api::OwnGpuRef::drop(OwnGpu::of(*allocator));
}
