// SPDX-License-Identifier: Apache-2.0
// Kernels of quantised weights through Highway.
#pragma once

#include "engine/cpu/linear/linear_kernels.h"

namespace gen::engine::cpu {

/// Null for levels without a Highway target.
const QuantKernels* quant_kernels_simd(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
