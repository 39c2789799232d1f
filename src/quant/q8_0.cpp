// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q8_0. The quotient uses the scale as stored, so that its rounding to binary16
// costs no precision. See q8_0.h.
#include "quant/q8_0.h"

#include <algorithm>
#include <cstring>

#include "quant/rounding.h"
#include "tensor/half.h"

namespace gen::quant {

void decode_q8_0(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t start = 0; start < n; start += 32, blocks += sizeof(Q8_0Block), out += 32) {
    Q8_0Block block;
    std::memcpy(&block, blocks, sizeof(block));
    const float d = f16_to_f32(block.d);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.q[i]);
  }
}

void encode_q8_0(const float* x, std::byte* blocks, int64_t n) {
  for (int64_t start = 0; start < n; start += 32, blocks += sizeof(Q8_0Block), x += 32) {
    Q8_0Block block;
    block.d = scale_to_f16(largest_magnitude(x, 32) / 127.0F);
    const float inverse = inverse_or_zero(f16_to_f32(block.d));
    for (int i = 0; i < 32; ++i) {
      block.q[i] = static_cast<int8_t>(round_within(x[i] * inverse, -127, 127));
    }
    std::memcpy(blocks, &block, sizeof(block));
  }
}

}  // namespace gen::quant
