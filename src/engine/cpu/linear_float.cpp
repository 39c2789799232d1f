// SPDX-License-Identifier: Apache-2.0
// One copy of linear_float-inl.h per CPU level.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/linear_float-inl.h"
#include "engine/cpu/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/linear_float-inl.h"

namespace gen::engine::cpu {

const FloatKernels* float_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kFloatKernels);
}

}  // namespace gen::engine::cpu
