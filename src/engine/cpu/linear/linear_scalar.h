// SPDX-License-Identifier: Apache-2.0
// The scalar kernels of quantised weights, for the scalar level's table. See linear_scalar.cpp.
#pragma once

#include "engine/cpu/linear/linear_kernels.h"

namespace gen::engine::cpu {

const QuantKernels* quant_kernels_scalar() noexcept;

}  // namespace gen::engine::cpu
