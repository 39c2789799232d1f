// SPDX-License-Identifier: Apache-2.0
// IQ4_XS: 256 weights of 4 bits in eight runs of 32, each with a signed scale of 6 bits; the levels
// are those of IQ4_NL. 4.25 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * scale[s] * (kNonLinearValues[q] - 128), q in [0, 15], s = index / 32. Reference codec:
/// unpack_iq4_xs and decode.h, encode_iq4_xs.
struct Iq4XsBlock {
  uint16_t d;             // scale of the scales, binary16
  uint16_t scales_high;   // scales plus 32: bits 2 * s and 2 * s + 1 are the high 2 of scale s
  uint8_t scales_low[4];  // the low 4: even s in the low half of byte s / 2, odd s in the high half
  uint8_t qs[128];        // 16 bytes a run: byte i holds its weight i, in the high half i + 16
};
static_assert(sizeof(Iq4XsBlock) == 136 && alignof(Iq4XsBlock) == 2);

void unpack_iq4_xs(const std::byte* block, BlockParts& parts);
/// fit_signed of k_fit.h.
void encode_iq4_xs(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
