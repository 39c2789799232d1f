// SPDX-License-Identifier: Apache-2.0
// Which kernels of quantised weights a level uses. See linear_kernels.h.
#include "engine/cpu/linear_kernels.h"

#include "engine/cpu/linear_quant_simd.h"
#include "engine/cpu/linear_scalar.h"
#include "engine/cpu/linear_vnni.h"

namespace gen::engine::cpu {

const QuantKernels* quant_kernels(CpuLevel level) noexcept {
  const bool dot = level == CpuLevel::kAvx512Vnni || level == CpuLevel::kAvx512Bf16;
  const QuantKernels* fast = dot ? quant_kernels_vnni() : quant_kernels_simd(level);
  return fast != nullptr ? fast : quant_kernels_scalar();
}

TileKernel find_tile_kernel(const KernelTable& kernels, DType type) noexcept {
  if (type == DType::kF32) return kernels.linear_float->f32;
  if (type == DType::kF16) return kernels.linear_float->f16;
  if (type == DType::kBF16) return kernels.linear_float->bf16;
  const quant::Traits* traits = quant::find_traits(type);
  return traits != nullptr ? kernels.linear_quant->of[traits - quant::kTraits] : nullptr;
}

}  // namespace gen::engine::cpu
