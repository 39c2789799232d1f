// SPDX-License-Identifier: Apache-2.0
// The tables of attention kernels, one per CPU level.
#include "engine/cpu/attention/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/attention/attention-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/attention/attention-inl.h"

namespace gen::engine::cpu {

const AttentionKernels* attention_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kAttention);
}

}  // namespace gen::engine::cpu
