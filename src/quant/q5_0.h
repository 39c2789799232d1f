// SPDX-License-Identifier: Apache-2.0
// Q5_0: 32 weights of 5 bits with one scale; 5.5 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * (q - 16), q in [0, 31]. Reference codec: unpack_q5_0 and decode.h, encode_q5_0.
struct Q5_0Block {
  uint16_t d;      // scale, binary16, of either sign
  uint8_t qh[4];   // bit i of the 32, lowest first: the fifth bit of weight i
  uint8_t qs[16];  // byte i: weight i in the low half, weight i + 16 in the high half
};
static_assert(sizeof(Q5_0Block) == 22 && alignof(Q5_0Block) == 2);

void unpack_q5_0(const std::byte* block, BlockParts& parts);
/// As encode_q4_0: the weight of largest magnitude is -16 exactly.
void encode_q5_0(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
