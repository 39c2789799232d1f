// SPDX-License-Identifier: Apache-2.0
// The kernels with the 8-bit dot product of AVX-512.
#pragma once

#include "engine/cpu/linear/linear_kernels.h"

namespace gen::engine::cpu {

/// Any number of rows; null if the kernels are not compiled.
const QuantKernels* quant_kernels_vnni() noexcept;
/// One row. Only where quant_kernels_vnni is not null.
const QuantKernels& vnni_row_kernels() noexcept;

}  // namespace gen::engine::cpu
