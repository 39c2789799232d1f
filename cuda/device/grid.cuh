// SPDX-License-Identifier: Apache-2.0
// sync_grid(): the barrier of a kernel that was launched with `cooperative`.
#pragma once

#include "cuda/device/qualifiers.cuh"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/thread.h"
#else
#include <cooperative_groups.h>

namespace gen::cuda::device {

/// Called by all threads of all blocks; writes before it are visible to all threads after it.
GEN_DEVICE void sync_grid() { cooperative_groups::this_grid().sync(); }

}  // namespace gen::cuda::device
#endif
