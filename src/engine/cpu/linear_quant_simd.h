// SPDX-License-Identifier: Apache-2.0
// Where linear_kernels.cpp finds the fast kernels of quantised weights.
#pragma once

#include "engine/cpu/linear_kernels.h"

namespace gen::engine::cpu {

/// Through Highway; null for a level that it has no target for.
const QuantKernels* quant_kernels_simd(CpuLevel level) noexcept;
/// 8-bit dot products of AVX-512; null where they are not compiled.
const QuantKernels* quant_kernels_vnni() noexcept;

}  // namespace gen::engine::cpu
