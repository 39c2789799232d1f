// SPDX-License-Identifier: Apache-2.0
// Q2_K: 256 weights of 2 bits in sixteen runs of 16, each with a scale and a minimum of 4 bits;
// 2.625 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * scale[s] * q - dmin * minimum[s], q in [0, 3], s = index / 16.
/// Reference codec: unpack_q2_k and decode.h, encode_q2_k.
struct Q2_KBlock {
  uint8_t scales[16];  // byte s: scale of run s in the low half, minimum in the high half
  // Two halves of 128 weights; byte i of 32 holds weights i, i + 32, i + 64 and i + 96 of its half,
  // lowest bits first.
  uint8_t qs[64];
  uint16_t d;     // scale of the scales, binary16
  uint16_t dmin;  // scale of the minima, binary16
};
static_assert(sizeof(Q2_KBlock) == 84 && alignof(Q2_KBlock) == 2);

void unpack_q2_k(const std::byte* block, BlockParts& parts);
/// fit_with_minima of k_fit.h.
void encode_q2_k(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
