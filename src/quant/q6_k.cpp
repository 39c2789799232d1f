// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q6_K. For each run of 16 the encoder tries scales around extreme / -32 and
// keeps the least-squares scale of the best rounding. See q6_k.h.
#include "quant/q6_k.h"

#include <cmath>
#include <cstring>

#include "quant/rounding.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr int kRun = 16;
constexpr int kRuns = 16;

// The scale of either sign for which scale * q, q in [-32, 31], comes closest to x.
float best_scale(const float* x) {
  float extreme = 0.0F;
  for (int i = 0; i < kRun; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  if (extreme == 0.0F) return 0.0F;
  float best = extreme / -32.0F;
  double best_gain = -1.0;
  for (int step = -9; step <= 9; ++step) {
    const float inverse = inverse_or_zero(extreme / (-32.0F + 0.1F * static_cast<float>(step)));
    double sum_qx = 0.0;
    double sum_qq = 0.0;
    for (int i = 0; i < kRun; ++i) {
      const double q = round_within(x[i] * inverse, -32, 31);
      const double importance = static_cast<double>(x[i]) * x[i];
      sum_qx += importance * q * x[i];
      sum_qq += importance * q * q;
    }
    // With the best scale for these q the squared error falls by sum_qx^2 / sum_qq.
    const double gain = sum_qq > 0.0 ? sum_qx * sum_qx / sum_qq : 0.0;
    if (gain > best_gain && sum_qq > 0.0) {
      best_gain = gain;
      best = static_cast<float>(sum_qx / sum_qq);
    }
  }
  return best;
}

void put_level(Q6_KBlock& block, int index, int q) {
  const int half = index / 128;
  const int group = index % 128 / 32;
  const int i = index % 32;
  uint8_t& low = block.low[64 * half + 32 * (group % 2) + i];
  low = static_cast<uint8_t>(low | ((q & 15) << (group < 2 ? 0 : 4)));
  uint8_t& high = block.high[32 * half + i];
  high = static_cast<uint8_t>(high | ((q >> 4) << (2 * group)));
}

}  // namespace

int q6_k_level(const Q6_KBlock& block, int index) noexcept {
  const int half = index / 128;
  const int group = index % 128 / 32;
  const int i = index % 32;
  const int low = block.low[64 * half + 32 * (group % 2) + i] >> (group < 2 ? 0 : 4);
  const int high = block.high[32 * half + i] >> (2 * group);
  return (low & 15) | ((high & 3) << 4);
}

void decode_q6_k(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t start = 0; start < n; start += 256, blocks += sizeof(Q6_KBlock), out += 256) {
    Q6_KBlock block;
    std::memcpy(&block, blocks, sizeof(block));
    const float d = f16_to_f32(block.d);
    for (int i = 0; i < 256; ++i) {
      const float scale = d * static_cast<float>(block.scales[i / kRun]);
      out[i] = scale * static_cast<float>(q6_k_level(block, i) - 32);
    }
  }
}

void encode_q6_k(const float* x, std::byte* blocks, int64_t n) {
  for (int64_t start = 0; start < n; start += 256, blocks += sizeof(Q6_KBlock), x += 256) {
    float scales[kRuns];
    float extreme = 0.0F;
    for (int s = 0; s < kRuns; ++s) {
      scales[s] = best_scale(x + s * kRun);
      if (std::fabs(scales[s]) > std::fabs(extreme)) extreme = scales[s];
    }
    Q6_KBlock block = {};
    block.d = scale_to_f16(extreme / -128.0F);
    const float d = f16_to_f32(block.d);
    for (int s = 0; s < kRuns; ++s) {
      block.scales[s] =
          static_cast<int8_t>(round_within(scales[s] * inverse_or_zero(d), -128, 127));
      const float inverse = inverse_or_zero(d * static_cast<float>(block.scales[s]));
      for (int i = 0; i < kRun; ++i) {
        const int index = s * kRun + i;
        put_level(block, index, round_within(x[index] * inverse, -32, 31) + 32);
      }
    }
    std::memcpy(blocks, &block, sizeof(block));
  }
}

}  // namespace gen::quant
