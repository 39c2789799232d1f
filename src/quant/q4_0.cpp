// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q4_0. See q4_0.h.
#include "quant/q4_0.h"

#include <cmath>
#include <cstring>

#include "quant/rounding.h"
#include "tensor/half.h"

namespace gen::quant {

void decode_q4_0(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t start = 0; start < n; start += 32, blocks += sizeof(Q4_0Block), out += 32) {
    Q4_0Block block;
    std::memcpy(&block, blocks, sizeof(block));
    const float d = f16_to_f32(block.d);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>((block.qs[i] & 15) - 8);
      out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) - 8);
    }
  }
}

void encode_q4_0(const float* x, std::byte* blocks, int64_t n) {
  for (int64_t start = 0; start < n; start += 32, blocks += sizeof(Q4_0Block), x += 32) {
    float extreme = 0.0F;
    for (int i = 0; i < 32; ++i) {
      if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    }
    Q4_0Block block;
    block.d = scale_to_f16(extreme / -8.0F);
    const float inverse = inverse_or_zero(f16_to_f32(block.d));
    for (int i = 0; i < 16; ++i) {
      const int low = round_within(x[i] * inverse, -8, 7) + 8;
      const int high = round_within(x[i + 16] * inverse, -8, 7) + 8;
      block.qs[i] = static_cast<uint8_t>(low | (high << 4));
    }
    std::memcpy(blocks, &block, sizeof(block));
  }
}

}  // namespace gen::quant
