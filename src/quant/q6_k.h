// SPDX-License-Identifier: Apache-2.0
// Q6_K: 256 weights of 6 bits in sixteen runs of 16, each with a scale of 8 bits; 6.5625 bits per
// weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * scale[s] * (q - 32), q in [0, 63], s = index / 16. Reference codec: unpack_q6_k and
/// decode.h, encode_q6_k.
/// The block is two halves of 128 weights. Weight 32 * g + i of a half (g in 0..3, i in 0..31):
/// low 4 bits in low[64 * half + 32 * (g % 2) + i], lower half of the byte for g < 2, else upper;
/// high 2 bits in high[32 * half + i], bits 2 * g and 2 * g + 1.
struct Q6_KBlock {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t d;  // scale of the scales, binary16
};
static_assert(sizeof(Q6_KBlock) == 210 && alignof(Q6_KBlock) == 2);

void unpack_q6_k(const std::byte* block, BlockParts& parts);
/// fit_signed of k_fit.h.
void encode_q6_k(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
