// SPDX-License-Identifier: Apache-2.0
// Q4_K: 256 weights of 4 bits in eight runs of 32, each with a scale and a minimum of 6 bits;
// 4.5 bits per weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = d * scale[s] * q - dmin * minimum[s], q in [0, 15], s = index / 32.
/// Reference codec: unpack_q4_k and decode.h, encode_q4_k.
struct Q4_KBlock {
  uint16_t d;     // scale of the scales, binary16
  uint16_t dmin;  // scale of the minima, binary16
  // Scales and minima of 6 bits. Bytes 0..3: scale 0..3 in the low 6 bits; bytes 4..7: minimum
  // 0..3 in the low 6 bits; byte 8 + j: scale 4 + j in the low half and minimum 4 + j in the high
  // half, 4 bits each, whose upper 2 bits are the top bits of bytes j and 4 + j.
  uint8_t scales[12];
  // 32 bytes for every two runs: byte i holds weight i of the even run in its low half, of the odd
  // run in its high half.
  uint8_t qs[128];
};
static_assert(sizeof(Q4_KBlock) == 144 && alignof(Q4_KBlock) == 2);

/// Scale and minimum of run `s`, each in [0, 63]. The same twelve bytes are in Q5_K.
struct ScaleMin {
  uint8_t scale;
  uint8_t minimum;
};
ScaleMin q4_k_scale_min(const uint8_t* packed, int s) noexcept;
/// Unpacks the eight scales and minima from `packed` to `parts`, and packs them.
void unpack_scale_mins(const uint8_t* packed, BlockParts& parts) noexcept;
void pack_scale_mins(const BlockParts& parts, uint8_t* packed) noexcept;

void unpack_q4_k(const std::byte* block, BlockParts& parts);
/// fit_with_minima of k_fit.h.
void encode_q4_k(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
