// SPDX-License-Identifier: Apache-2.0
// Q3_K: 256 weights of 3 bits in sixteen runs of 16, each with a signed scale of 6 bits; 3.4375
// bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * scale[s] * (q - 4), q in [0, 7], s = index / 16. Reference codec: unpack_q3_k and
/// decode.h, encode_q3_k.
struct Q3_KBlock {
  uint8_t high[32];  // bit g of byte i: the third bit of weight 32 * g + i
  // The lower two bits: two halves of 128 weights; byte i of 32 holds weights i, i + 32, i + 64
  // and i + 96 of its half, lowest bits first.
  uint8_t low[64];
  // Scales plus 32. Bytes 0..7: low 4 bits of scale s in the low half, of scale s + 8 in the high
  // half; byte 8 + j: high 2 bits of scales j, j + 4, j + 8 and j + 12, lowest bits first.
  uint8_t scales[12];
  uint16_t d;  // scale of the scales, binary16
};
static_assert(sizeof(Q3_KBlock) == 110 && alignof(Q3_KBlock) == 2);

void unpack_q3_k(const std::byte* block, BlockParts& parts);
/// fit_signed of k_fit.h.
void encode_q3_k(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
