// SPDX-License-Identifier: Apache-2.0
// One copy of linear_float-inl.h per CPU level; at avx512_bf16 BF16 has a kernel of its own.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/linear/linear_float-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/linear/linear_float-inl.h"
#include "engine/cpu/linear/linear_bf16.h"

namespace gen::engine::cpu {

#if GEN_BF16
constexpr FloatKernels with_bf16_dots(FloatKernels kernels) noexcept {
  kernels.bf16 = linear_bf16_dots;
  kernels.bf16_form = kActBF16;
  return kernels;
}
constexpr FloatKernels kBf16Kernels = with_bf16_dots(N_AVX3::kFloatKernels);
#endif

const FloatKernels* float_kernels(CpuLevel level) noexcept {
  const KernelRow<FloatKernels> rows[] = {
#if GEN_BF16
    {CpuLevel::kAvx512Bf16, &kBf16Kernels},
#endif
    {CpuLevel::kScalar, GEN_LANES_PICK(level, kFloatKernels)}
  };
  return pick_kernels(level, rows);
}

}  // namespace gen::engine::cpu
