// SPDX-License-Identifier: Apache-2.0
// NVFP4: 64 weights as floats of 4 bits (a sign, two bits of exponent, one of mantissa) in runs of
// 16 with a float of 8 bits as scale; 4.5 bits per weight. A tensor beside it in the file scales
// the whole matrix (model/weights.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// w = scale / 2 * (kE2M1At128Values[q] - 128), q in [0, 15], since the table doubles. The scale
/// has four bits of exponent, bias 7, and three of mantissa; 0 and 0x7F are 0. The highest bit
/// counts for nothing else.
struct Nvfp4Block {
  uint8_t scales[4];  // of the runs
  uint8_t qs[32];     // 8 bytes a run: byte i holds its weight i, in the high half i + 8
};
static_assert(sizeof(Nvfp4Block) == 36 && alignof(Nvfp4Block) == 1);

void unpack_nvfp4(const std::byte* block, BlockParts& parts);
/// Each run has the best of all scales.
void encode_nvfp4(const float* x, const float* importance, std::byte* blocks, int64_t n);

}  // namespace gen::quant
