// SPDX-License-Identifier: Apache-2.0
// A gen_gpu_allocator table as the allocator the rooms know.
#pragma once

#include <memory>

#include "engine/gpu_memory.h"
#include <generate/gpu.h>

namespace gen::api {

/// Checks and copies the table; one of gen_gpu_allocator_host stays for as long as what is given
/// out. kInvalidArgument for null, a wrong struct_size or a missing function.
Result<std::shared_ptr<engine::GpuAllocator>> wrap_gpu_allocator(const gen_gpu_allocator* table);

}  // namespace gen::api
