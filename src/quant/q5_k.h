// SPDX-License-Identifier: Apache-2.0
// Q5_K: 256 weights of 5 bits in eight runs of 32, each with a scale and a minimum of 6 bits;
// 5.5 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * scale[s] * q - dmin * minimum[s], q in [0, 31], s = index / 32.
/// Reference codec: unpack_q5_k and decode.h, encode_q5_k.
struct Q5_KBlock {
  uint16_t d;          // scale of the scales, binary16
  uint16_t dmin;       // scale of the minima, binary16
  uint8_t scales[12];  // as in Q4_KBlock
  uint8_t high[32];    // bit s of byte i: the fifth bit of weight i of run s
  uint8_t qs[128];     // the lower four bits, as in Q4_KBlock
};
static_assert(sizeof(Q5_KBlock) == 176 && alignof(Q5_KBlock) == 2);

void unpack_q5_k(const std::byte* block, BlockParts& parts);
/// fit_with_minima of k_fit.h.
void encode_q5_k(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
