// SPDX-License-Identifier: Apache-2.0
// TQ1_0 and TQ2_0: 256 weights of -1, 0 or 1 with one scale. 1.6875 and 2.0625 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * (q - 1), q in [0, 2]. A byte has five digits of base 3 as a fraction: byte / 256, times
/// 3 and without the part before the point for each digit in front; the next digit is that part.
struct Tq1Block {
  // 32 bytes of weights 0 to 159, byte i with i, i + 32, …; then 16 of weights 160 to 239, byte i
  // with 160 + i, 160 + i + 16, …
  uint8_t qs[48];
  uint8_t qh[4];  // weights 240 to 255, four digits: byte i with 240 + i, 240 + i + 4, …
  uint16_t d;     // binary16
};
static_assert(sizeof(Tq1Block) == 54 && alignof(Tq1Block) == 2);

/// w = d * (q - 1), q in [0, 3]; encoders use [0, 2].
struct Tq2Block {
  uint8_t qs[64];  // two halves of 128 weights, byte i of 32 with i, i + 32, i + 64 and i + 96
  uint16_t d;      // binary16
};
static_assert(sizeof(Tq2Block) == 66 && alignof(Tq2Block) == 2);

void unpack_tq1_0(const std::byte* block, BlockParts& parts);
void unpack_tq2_0(const std::byte* block, BlockParts& parts);
/// level_fit.h.
void encode_tq1_0(const float* x, const float* importance, std::byte* blocks, int64_t n);
void encode_tq2_0(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
