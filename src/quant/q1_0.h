// SPDX-License-Identifier: Apache-2.0
// Q1_0: 128 weights of one bit, with one scale; 1.125 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d where the weight's bit is set, otherwise -d.
struct Q1_0Block {
  uint16_t d;      // binary16
  uint8_t qs[16];  // weight i: bit i % 8 of byte i / 8
};
static_assert(sizeof(Q1_0Block) == 18 && alignof(Q1_0Block) == 2);

void unpack_q1_0(const std::byte* block, BlockParts& parts);
/// d is the mean magnitude, weighted by shares_by_size of shares.h.
void encode_q1_0(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
