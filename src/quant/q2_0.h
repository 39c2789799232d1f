// SPDX-License-Identifier: Apache-2.0
// Q2_0: 64 weights of two bits, with one scale; 2.25 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * (q - 1), q in [0, 3].
struct Q2_0Block {
  uint16_t d;      // binary16, of either sign
  uint8_t qs[16];  // byte i: weights 4 * i to 4 * i + 3, lowest bits first
};
static_assert(sizeof(Q2_0Block) == 18 && alignof(Q2_0Block) == 2);

void unpack_q2_0(const std::byte* block, BlockParts& parts);
/// level_fit.h.
void encode_q2_0(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
