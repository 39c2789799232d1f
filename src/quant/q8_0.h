// SPDX-License-Identifier: Apache-2.0
// Q8_0: 32 weights as signed bytes with one scale; 8.5 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w[i] = d * q[i]. Reference codec: unpack_q8_0 and decode.h, encode_q8_0.
struct Q8_0Block {
  uint16_t d;    // scale, binary16
  int8_t q[32];  // in order; encoders use [-127, 127], files may hold -128
};
static_assert(sizeof(Q8_0Block) == 34 && alignof(Q8_0Block) == 2);

void unpack_q8_0(const std::byte* block, BlockParts& parts);
/// d = amax / 127 as binary16, q = w / d rounded to nearest even.
void encode_q8_0(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
