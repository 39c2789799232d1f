// SPDX-License-Identifier: Apache-2.0
// A caller's gen_gpu_allocator table as an engine's allocator.
#pragma once

#include <memory>

#include "engine/memory/gpu_allocator.h"
#include "engine/memory/gpu_memory.h"
#include <generate/gpu.h>

namespace gen::api {

/// A table for EngineOptions, and the caller's functions behind it.
struct EngineGpu {
  std::shared_ptr<const engine::GpuTable> table;
  std::shared_ptr<Callbacks> callbacks;
};

/// Checks and copies the table; an allocator of the library is kept alive by the result.
/// kInvalidArgument for null, a wrong struct_size, a missing function, a device below -1, or only
/// one of the functions for pinned memory.
Result<EngineGpu> engine_gpu_allocator(const gen_gpu_allocator& table);
Result<std::shared_ptr<engine::GpuAllocator>> wrap_gpu_allocator(const gen_gpu_allocator* table);

}  // namespace gen::api
