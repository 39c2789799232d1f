// SPDX-License-Identifier: Apache-2.0
// Q5_1: 32 weights of 5 bits with a scale and an offset; 6 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * q + m, q in [0, 31]. Reference codec: unpack_q5_1 and decode.h, encode_q5_1.
struct Q5_1Block {
  uint16_t d;      // scale, binary16
  uint16_t m;      // offset, binary16
  uint8_t qh[4];   // bit i of the 32, lowest first: the fifth bit of weight i
  uint8_t qs[16];  // byte i: weight i in the low half, weight i + 16 in the high half
};
static_assert(sizeof(Q5_1Block) == 24 && alignof(Q5_1Block) == 2);

void unpack_q5_1(const std::byte* block, BlockParts& parts);
/// m is the least weight and d a thirty-first of the width.
void encode_q5_1(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
