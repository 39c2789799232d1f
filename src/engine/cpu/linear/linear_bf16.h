// SPDX-License-Identifier: Apache-2.0
// The kernel of BF16 weights with the bfloat16 dot product of AVX-512.
#pragma once

#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/simd/vnni_region.h"

namespace gen::engine::cpu {

#if GEN_BF16
/// Any number of rows of x in form kActBF16.
void linear_bf16_dots(const TileJob& job);
#endif

}  // namespace gen::engine::cpu
