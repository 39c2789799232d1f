// SPDX-License-Identifier: Apache-2.0
// The scalar kernels of quantised weights, for the scalar level's table. See linear_scalar.cpp.
#pragma once

#include "engine/cpu/linear_kernels.h"

namespace gen::engine::cpu {

void linear_q8_0_scalar(const TileJob& job);
void linear_q4_0_scalar(const TileJob& job);
void linear_q4_k_scalar(const TileJob& job);
void linear_q6_k_scalar(const TileJob& job);

}  // namespace gen::engine::cpu
