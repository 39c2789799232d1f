// SPDX-License-Identifier: Apache-2.0
// Q4_1: 32 weights of 4 bits with a scale and an offset; 5 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * q + m, q in [0, 15]. Reference codec: unpack_q4_1 and decode.h, encode_q4_1.
struct Q4_1Block {
  uint16_t d;      // scale, binary16
  uint16_t m;      // offset, binary16
  uint8_t qs[16];  // byte i: weight i in the low half, weight i + 16 in the high half
};
static_assert(sizeof(Q4_1Block) == 20 && alignof(Q4_1Block) == 2);

void unpack_q4_1(const std::byte* block, BlockParts& parts);
/// m is the least weight and d a fifteenth of the width.
void encode_q4_1(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
