// SPDX-License-Identifier: Apache-2.0
// IQ4_NL: 32 weights of 4 bits with one scale; the codes denote uneven levels, closer to each other
// near zero, where most weights are. 4.5 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * (kNonLinearValues[q] - 128), q in [0, 15]. Reference codec: unpack_iq4_nl and decode.h,
/// encode_iq4_nl.
struct Iq4NlBlock {
  uint16_t d;      // scale, binary16, of either sign
  uint8_t qs[16];  // byte i: weight i in the low half, weight i + 16 in the high half
};
static_assert(sizeof(Iq4NlBlock) == 18 && alignof(Iq4NlBlock) == 2);

void unpack_iq4_nl(const std::byte* block, BlockParts& parts);
/// fit_scale of k_fit.h.
void encode_iq4_nl(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
