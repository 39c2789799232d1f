// SPDX-License-Identifier: Apache-2.0
// The kernels with 8-bit dot products of AVX-512.
#pragma once

#include "engine/cpu/linear/linear_kernels.h"

namespace gen::engine::cpu {

/// Any number of rows; null where they are not compiled.
const QuantKernels* quant_kernels_vnni() noexcept;
/// One row. Only where quant_kernels_vnni is not null.
const QuantKernels& vnni_row_kernels() noexcept;

}  // namespace gen::engine::cpu
