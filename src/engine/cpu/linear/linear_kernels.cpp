// SPDX-License-Identifier: Apache-2.0
// Which kernels of quantised weights a level uses. See linear_kernels.h.
#include "engine/cpu/linear/linear_kernels.h"

#include "engine/cpu/linear/linear_quant_simd.h"
#include "engine/cpu/linear/linear_scalar.h"
#include "engine/cpu/linear/linear_vnni.h"

namespace gen::engine::cpu {

const QuantKernels* quant_kernels(CpuLevel level) noexcept {
  const KernelRow<QuantKernels> rows[] = {{CpuLevel::kAvx512Vnni, quant_kernels_vnni()},
                                          {CpuLevel::kScalar, quant_kernels_simd(level)},
                                          {CpuLevel::kScalar, quant_kernels_scalar()}};
  return pick_kernels(level, rows);
}

TileKernel find_tile_kernel(const KernelTable& kernels, DType type) noexcept {
  if (type == DType::kF32) return kernels.linear_float->f32;
  if (type == DType::kF16) return kernels.linear_float->f16;
  if (type == DType::kBF16) return kernels.linear_float->bf16;
  const quant::Traits* traits = quant::find_traits(type);
  return traits != nullptr ? kernels.linear_quant->of[traits - quant::kTraits] : nullptr;
}

uint32_t activation_form(const KernelTable& kernels, DType type) noexcept {
  if (type == DType::kBF16) return kernels.linear_float->bf16_form;
  if (type == DType::kF32 || type == DType::kF16) return kActF32;
  const quant::Traits* traits = quant::find_traits(type);
  if (traits == nullptr) return 0;
  return traits->block == 32 ? kActQ8 : kActQ8K;
}

}  // namespace gen::engine::cpu
