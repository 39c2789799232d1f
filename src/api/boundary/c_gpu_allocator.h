// SPDX-License-Identifier: Apache-2.0
// A gen_gpu_allocator table as the allocator the rooms know.
#pragma once

#include <memory>

#include "engine/memory/gpu_allocator.h"
#include "engine/memory/gpu_memory.h"
#include <generate/gpu.h>

namespace gen::api {

/// A table for EngineOptions, and the host's functions behind it.
struct EngineGpu {
  std::shared_ptr<const engine::GpuTable> table;
  std::shared_ptr<Callbacks> callbacks;
};

/// Both check and copy the table; one that the library has made stays for as long as what is given
/// out. kInvalidArgument for null, a wrong struct_size, a missing function, a device below
/// -1, or one of the functions for pinned memory without the other.
Result<EngineGpu> engine_gpu_allocator(const gen_gpu_allocator& table);
Result<std::shared_ptr<engine::GpuAllocator>> wrap_gpu_allocator(const gen_gpu_allocator* table);

}  // namespace gen::api
