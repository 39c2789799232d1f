// SPDX-License-Identifier: Apache-2.0
// IQ1_S and IQ1_M: 256 weights, eight by eight an entry of a codebook (iq1_grid.h), moved up or
// down by an eighth, with scales of 3 bits. 1.5625 and 1.75 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * (2 * s + 1) * (value +- 1/8), value of the codebook, in {-1, 0, 1}. In eight runs of 32
/// that share s and the direction. Unpacked it is d / 8 times an integer less a minimum.
struct Iq1SBlock {
  uint16_t d;      // scale of the scales, binary16
  uint8_t qs[32];  // the low 8 bits of the index of eight weights
  // Of a run: bits 8 to 10 of its four indices from the lowest bits up, s, and whether it is moved
  // down.
  uint16_t qh[8];
};
static_assert(sizeof(Iq1SBlock) == 50 && alignof(Iq1SBlock) == 2);

/// The same with runs of 16 and a direction for every eight weights.
struct Iq1MBlock {
  uint8_t qs[32];  // the low 8 bits of the index of eight weights
  uint8_t qh[16];  // of eight weights 4 bits, low half first: bits 8 to 10, and whether moved down
  // Each has s of four runs, 3 bits each, and on top 4 bits of d, which begin with the lowest.
  uint16_t scales[4];
};
static_assert(sizeof(Iq1MBlock) == 56 && alignof(Iq1MBlock) == 2);

void unpack_iq1_s(const std::byte* block, BlockParts& parts);
void unpack_iq1_m(const std::byte* block, BlockParts& parts);
/// codebook_fit.h.
void encode_iq1_s(const float* x, const float* importance, std::byte* blocks, int64_t n);
void encode_iq1_m(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
