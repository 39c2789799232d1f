// SPDX-License-Identifier: Apache-2.0
// Which kernels of quantised weights a level uses. See linear_kernels.h.
#include "engine/cpu/linear_kernels.h"

#include "engine/cpu/linear_quant_simd.h"
#include "engine/cpu/linear_scalar.h"

namespace gen::engine::cpu {
namespace {

constexpr QuantKernels kScalarKernels = {linear_q8_0_scalar, linear_q4_0_scalar, linear_q4_k_scalar,
                                         linear_q6_k_scalar};

}  // namespace

const QuantKernels* quant_kernels(CpuLevel level) noexcept {
  const bool dot = level == CpuLevel::kAvx512Vnni || level == CpuLevel::kAvx512Bf16;
  const QuantKernels* fast = dot ? quant_kernels_vnni() : quant_kernels_simd(level);
  return fast != nullptr ? fast : &kScalarKernels;
}

TileKernel find_tile_kernel(const KernelTable& kernels, DType type) noexcept {
  switch (type) {
    case DType::kF32:
      return kernels.linear_float->f32;
    case DType::kF16:
      return kernels.linear_float->f16;
    case DType::kBF16:
      return kernels.linear_float->bf16;
    case DType::kQ8_0:
      return kernels.linear_quant->q8_0;
    case DType::kQ4_0:
      return kernels.linear_quant->q4_0;
    case DType::kQ4_K:
      return kernels.linear_quant->q4_k;
    case DType::kQ6_K:
      return kernels.linear_quant->q6_k;
    default:
      return nullptr;
  }
}

}  // namespace gen::engine::cpu
