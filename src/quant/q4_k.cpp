// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q4_K. The encoder fits each run of 32 by alternating: given a slope, round the
// weights; given the rounded weights, solve the two-by-two least squares for slope and offset. It
// tries several first slopes and keeps the best. Larger weights count more, since they matter more
// to a product. See q4_k.h.
#include "quant/q4_k.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/rounding.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr int kRun = 32;
constexpr int kRuns = 8;
constexpr int kTop = 15;

// x is approximated by scale * q - minimum, both not negative.
struct Fit {
  float scale = 0.0F;
  float minimum = 0.0F;
  double error = 0.0;
};

double fit_error(const float* x, const float* importance, const Fit& fit) {
  const float inverse = inverse_or_zero(fit.scale);
  double error = 0.0;
  for (int i = 0; i < kRun; ++i) {
    const int q = round_within((x[i] + fit.minimum) * inverse, 0, kTop);
    const double miss = static_cast<double>(fit.scale) * q - fit.minimum - x[i];
    error += importance[i] * miss * miss;
  }
  return error;
}

// Least squares for scale and minimum with q held as `start` rounds the weights.
Fit refit(const float* x, const float* importance, const Fit& start) {
  const float inverse = inverse_or_zero(start.scale);
  double sum_w = 0.0, sum_q = 0.0, sum_qq = 0.0, sum_x = 0.0, sum_qx = 0.0;
  for (int i = 0; i < kRun; ++i) {
    const double q = round_within((x[i] + start.minimum) * inverse, 0, kTop);
    const double w = importance[i];
    sum_w += w;
    sum_q += w * q;
    sum_qq += w * q * q;
    sum_x += w * x[i];
    sum_qx += w * q * x[i];
  }
  const double determinant = sum_w * sum_qq - sum_q * sum_q;
  if (!(determinant > 0.0)) return start;
  double scale = (sum_w * sum_qx - sum_q * sum_x) / determinant;
  double minimum = (sum_q * sum_qx - sum_qq * sum_x) / determinant;
  if (minimum < 0.0) {  // the format cannot add, so the best without an offset
    minimum = 0.0;
    scale = sum_qq > 0.0 ? sum_qx / sum_qq : 0.0;
  }
  if (!(scale > 0.0)) return start;
  return {static_cast<float>(scale), static_cast<float>(minimum), 0.0};
}

Fit best_fit(const float* x) {
  float importance[kRun];
  double square = 0.0;
  for (int i = 0; i < kRun; ++i) square += static_cast<double>(x[i]) * x[i];
  const float typical = static_cast<float>(std::sqrt(square / kRun));
  for (int i = 0; i < kRun; ++i) importance[i] = typical + std::fabs(x[i]);

  const auto [least, most] = std::minmax_element(x, x + kRun);
  const float low = std::min(*least, 0.0F);
  const float width = std::max(*most, 0.0F) - low;
  if (!(width > 0.0F)) return {};
  Fit best = {width / kTop, -low, 0.0};
  best.error = fit_error(x, importance, best);
  // Levels from a little fewer to a little more than 15 over the full width: the outermost weights
  // may saturate if the others gain by it.
  for (int step = -8; step <= 16; ++step) {
    Fit trial = {width / (kTop + 0.125F * static_cast<float>(step)), -low, 0.0};
    for (int round = 0; round < 2; ++round) {
      trial = refit(x, importance, trial);
      trial.error = fit_error(x, importance, trial);
      if (trial.error < best.error) best = trial;
    }
  }
  return best;
}

void put_scale_min(uint8_t* packed, int s, int scale, int minimum) {
  if (s < 4) {
    packed[s] = static_cast<uint8_t>(packed[s] | scale);
    packed[s + 4] = static_cast<uint8_t>(packed[s + 4] | minimum);
  } else {
    packed[s + 4] = static_cast<uint8_t>((scale & 15) | ((minimum & 15) << 4));
    packed[s - 4] = static_cast<uint8_t>(packed[s - 4] | ((scale >> 4) << 6));
    packed[s] = static_cast<uint8_t>(packed[s] | ((minimum >> 4) << 6));
  }
}

}  // namespace

ScaleMin q4_k_scale_min(const uint8_t* packed, int s) noexcept {
  if (s < 4) {
    return {static_cast<uint8_t>(packed[s] & 63), static_cast<uint8_t>(packed[s + 4] & 63)};
  }
  return {static_cast<uint8_t>((packed[s + 4] & 15) | ((packed[s - 4] >> 6) << 4)),
          static_cast<uint8_t>((packed[s + 4] >> 4) | ((packed[s] >> 6) << 4))};
}

void decode_q4_k(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t start = 0; start < n; start += 256, blocks += sizeof(Q4_KBlock), out += 256) {
    Q4_KBlock block;
    std::memcpy(&block, blocks, sizeof(block));
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int s = 0; s < kRuns; ++s) {
      const ScaleMin run = q4_k_scale_min(block.scales, s);
      const float scale = d * static_cast<float>(run.scale);
      const float minimum = dmin * static_cast<float>(run.minimum);
      for (int i = 0; i < kRun; ++i) {
        const int byte = block.qs[(s / 2) * kRun + i];
        const int q = s % 2 == 0 ? byte & 15 : byte >> 4;
        out[s * kRun + i] = scale * static_cast<float>(q) - minimum;
      }
    }
  }
}

void encode_q4_k(const float* x, std::byte* blocks, int64_t n) {
  for (int64_t start = 0; start < n; start += 256, blocks += sizeof(Q4_KBlock), x += 256) {
    Fit fits[kRuns];
    float top_scale = 0.0F;
    float top_minimum = 0.0F;
    for (int s = 0; s < kRuns; ++s) {
      fits[s] = best_fit(x + s * kRun);
      top_scale = std::max(top_scale, fits[s].scale);
      top_minimum = std::max(top_minimum, fits[s].minimum);
    }
    Q4_KBlock block = {};
    block.d = scale_to_f16(top_scale / 63.0F);
    block.dmin = scale_to_f16(top_minimum / 63.0F);
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int s = 0; s < kRuns; ++s) {
      const int scale6 = round_within(fits[s].scale * inverse_or_zero(d), 0, 63);
      const int minimum6 = round_within(fits[s].minimum * inverse_or_zero(dmin), 0, 63);
      put_scale_min(block.scales, s, scale6, minimum6);
      const float inverse = inverse_or_zero(d * static_cast<float>(scale6));
      const float minimum = dmin * static_cast<float>(minimum6);
      for (int i = 0; i < kRun; ++i) {
        const int q = round_within((x[s * kRun + i] + minimum) * inverse, 0, kTop);
        uint8_t& byte = block.qs[(s / 2) * kRun + i];
        byte = static_cast<uint8_t>(s % 2 == 0 ? byte | q : byte | (q << 4));
      }
    }
    std::memcpy(blocks, &block, sizeof(block));
  }
}

}  // namespace gen::quant
