// SPDX-License-Identifier: Apache-2.0
// IQ3_XXS and IQ3_S: 256 weights, four by four an entry of a codebook (iq3_grids.h), and their
// signs, in eight runs of 32 with a scale of 4 bits. 3.0625 and 3.4375 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d / 4 * (2 * s + 1) * +-magnitude.
struct Iq3XxsBlock {
  uint16_t d;         // scale of the scales, binary16
  uint8_t qs[64];     // indices, of four weights each
  uint16_t rest[16];  // a word of 32 bits a run: four times seven signs of eight weights (the
                      // eighth makes their number even), then s in the highest 4 bits
};
static_assert(sizeof(Iq3XxsBlock) == 98 && alignof(Iq3XxsBlock) == 2);

/// w = d * (2 * s + 1) * +-magnitude.
struct Iq3SBlock {
  uint16_t d;         // scale of the scales, binary16
  uint8_t qs[64];     // the low 8 bits of the indices
  uint8_t qh[8];      // byte r: bit 8 of the eight indices of run r
  uint8_t signs[32];  // bit i: weight i of eight
  uint8_t scales[4];  // byte i: s of run 2 * i in the low half, of run 2 * i + 1 in the high half
};
static_assert(sizeof(Iq3SBlock) == 110 && alignof(Iq3SBlock) == 2);

void unpack_iq3_xxs(const std::byte* block, BlockParts& parts);
void unpack_iq3_s(const std::byte* block, BlockParts& parts);
/// codebook_fit.h.
void encode_iq3_xxs(const float* x, const float* importance, std::byte* blocks, int64_t n);
void encode_iq3_s(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
