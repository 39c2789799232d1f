// SPDX-License-Identifier: Apache-2.0
// MXFP4: 32 weights as floats of 4 bits (a sign, two bits of exponent, one of mantissa) that share
// a power of two; 4.25 bits per weight. After the OCP microscaling formats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = 2^(e - 128) * (kE2M1Values[q] - 16), q in [0, 15]. Reference codec: unpack_mxfp4 and
/// decode.h, encode_mxfp4.
struct Mxfp4Block {
  uint8_t e;       // exponent of the scale
  uint8_t qs[16];  // byte i: weight i in the low half, weight i + 16 in the high half
};
static_assert(sizeof(Mxfp4Block) == 17 && alignof(Mxfp4Block) == 1);

void unpack_mxfp4(const std::byte* block, BlockParts& parts);
/// The exponent puts the largest magnitude between the levels 8 and 16 (of which 12 is the last,
/// so that the largest may saturate), or one higher where that errs less.
void encode_mxfp4(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
