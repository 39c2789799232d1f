// SPDX-License-Identifier: Apache-2.0
// Q4_0: 32 weights of 4 bits with one scale; 4.5 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * (q - 8), q in [0, 15]. Reference codec: unpack_q4_0 and decode.h, encode_q4_0.
struct Q4_0Block {
  uint16_t d;      // scale, binary16, of either sign
  uint8_t qs[16];  // byte i: weight i in the low half, weight i + 16 in the high half
};
static_assert(sizeof(Q4_0Block) == 18 && alignof(Q4_0Block) == 2);

void unpack_q4_0(const std::byte* block, BlockParts& parts);
/// The weight of largest magnitude is stored as -8 exactly (d = w / -8), since that side reaches
/// farther.
void encode_q4_0(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
