// SPDX-License-Identifier: Apache-2.0
// IQ2_XXS, IQ2_XS and IQ2_S: 256 weights, eight by eight an entry of a codebook (iq2_grids.h) and
// their signs, with scales of 4 bits. 2.0625, 2.3125 and 2.5625 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d / 8 * (2 * s + 1) * +-magnitude. In all three d is the scale of the scales, binary16.

/// A run of 32 is two words: four indices of a byte each, then four times seven signs (the eighth
/// makes their number even) and s in the highest 4 bits.
struct Iq2XxsBlock {
  uint16_t d;
  uint16_t words[32];
};
static_assert(sizeof(Iq2XxsBlock) == 66 && alignof(Iq2XxsBlock) == 2);

/// Runs of 16.
struct Iq2XsBlock {
  uint16_t d;
  uint16_t qs[32];    // of eight weights: the index in 9 bits, then seven signs
  uint8_t scales[8];  // byte i: s of run 2 * i in the low half, of run 2 * i + 1 in the high half
};
static_assert(sizeof(Iq2XsBlock) == 74 && alignof(Iq2XsBlock) == 2);

/// Runs of 16.
struct Iq2SBlock {
  uint16_t d;
  uint8_t qs[32];     // the low 8 bits of the index of eight weights
  uint8_t signs[32];  // bit i: weight i of eight
  uint8_t qh[8];      // byte i: bits 8 and 9 of indices 4 * i to 4 * i + 3, lowest bits first
  uint8_t scales[8];  // as in IQ2_XS
};
static_assert(sizeof(Iq2SBlock) == 82 && alignof(Iq2SBlock) == 2);

void unpack_iq2_xxs(const std::byte* block, BlockParts& parts);
void unpack_iq2_xs(const std::byte* block, BlockParts& parts);
void unpack_iq2_s(const std::byte* block, BlockParts& parts);
/// codebook_fit.h.
void encode_iq2_xxs(const float* x, const float* importance, std::byte* blocks, int64_t n);
void encode_iq2_xs(const float* x, const float* importance, std::byte* blocks, int64_t n);
void encode_iq2_s(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
