// SPDX-License-Identifier: Apache-2.0
// The fits. With minima it alternates: given a slope, round the weights; given the rounded weights,
// solve the two-by-two least squares for slope and offset; from several first slopes, and the best
// is kept. Without minima it tries scales around that which puts the extreme on the farthest level
// and keeps the least-squares scale of the best rounding. See k_fit.h.
#include "quant/k_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "quant/decode.h"
#include "quant/rounding.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr int kMostRun = 32;

// x is approximated by scale * q - minimum, both not negative.
struct Fit {
  float scale = 0.0F;
  float minimum = 0.0F;
  double error = 0.0;
};

// The weights of one run, of codes 0 to `top`.
class RunFit {
 public:
  RunFit(const float* x, int n, int top) : x_(x), n_(n), top_(top) {
    double square = 0.0;
    for (int i = 0; i < n_; ++i) square += static_cast<double>(x[i]) * x[i];
    const float typical = static_cast<float>(std::sqrt(square / n_));
    for (int i = 0; i < n_; ++i) importance_[i] = typical + std::fabs(x[i]);
  }

  [[nodiscard]] Fit best() const;

 private:
  [[nodiscard]] double error_of(const Fit& fit) const;
  [[nodiscard]] Fit refit(const Fit& start) const;

  const float* x_;
  int n_;
  int top_;
  float importance_[kMostRun];
};

double RunFit::error_of(const Fit& fit) const {
  const float inverse = inverse_or_zero(fit.scale);
  double error = 0.0;
  for (int i = 0; i < n_; ++i) {
    const int q = round_within((x_[i] + fit.minimum) * inverse, 0, top_);
    const double miss = static_cast<double>(fit.scale) * q - fit.minimum - x_[i];
    error += importance_[i] * miss * miss;
  }
  return error;
}

// Least squares for scale and minimum with q held as `start` rounds the weights.
Fit RunFit::refit(const Fit& start) const {
  const float inverse = inverse_or_zero(start.scale);
  double sum_w = 0.0, sum_q = 0.0, sum_qq = 0.0, sum_x = 0.0, sum_qx = 0.0;
  for (int i = 0; i < n_; ++i) {
    const double q = round_within((x_[i] + start.minimum) * inverse, 0, top_);
    const double w = importance_[i];
    sum_w += w;
    sum_q += w * q;
    sum_qq += w * q * q;
    sum_x += w * x_[i];
    sum_qx += w * q * x_[i];
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

Fit RunFit::best() const {
  const auto [least, most] = std::minmax_element(x_, x_ + n_);
  const float low = std::min(*least, 0.0F);
  const float width = std::max(*most, 0.0F) - low;
  if (!(width > 0.0F)) return {};
  const auto levels = static_cast<float>(top_);
  Fit best = {width / levels, -low, 0.0};
  best.error = error_of(best);
  // Levels from a little fewer to a little more than there are over the full width: the outermost
  // weights may saturate if the others gain by it.
  for (int step = -8; step <= 16; ++step) {
    Fit trial = {width / (levels + 0.125F * static_cast<float>(step)), -low, 0.0};
    for (int round = 0; round < 2; ++round) {
      trial = refit(trial);
      trial.error = error_of(trial);
      if (trial.error < best.error) best = trial;
    }
  }
  return best;
}

// For twice an offset level, cut to an integer: the nearest code of kNonLinearValues. Borders
// between codes are halves, so that nothing is lost by the cut.
constexpr auto kNonLinearNearest = [] {
  std::array<uint8_t, 2 * kNonLinearValues[15] + 1> nearest = {};
  int code = 0;
  for (int twice = 0; twice < static_cast<int>(nearest.size()); ++twice) {
    while (code < 15 && twice >= kNonLinearValues[code] + kNonLinearValues[code + 1]) ++code;
    nearest[static_cast<size_t>(twice)] = static_cast<uint8_t>(code);
  }
  return nearest;
}();

uint8_t nearest_of_all(const Traits& traits, float level) noexcept {
  int nearest = 0;
  for (int code = 1; code < 1 << traits.bits; ++code) {
    const float miss = std::fabs(level - static_cast<float>(level_of(traits, code)));
    if (miss < std::fabs(level - static_cast<float>(level_of(traits, nearest)))) nearest = code;
  }
  return static_cast<uint8_t>(nearest);
}

}  // namespace

uint8_t nearest_code(const Traits& traits, float level) noexcept {
  if (traits.table == CodeTable::kE2M1) return nearest_of_all(traits, level);
  if (traits.table == CodeTable::kNone) {
    const int top = (1 << traits.bits) - 1 - traits.zero;
    return static_cast<uint8_t>(round_within(level, -traits.zero, top) + traits.zero);
  }
  const float value = level + static_cast<float>(traits.zero);
  const float raised = value > 0.0F ? value : 0.0F;
  constexpr float kMost = kNonLinearValues[15];
  const float limited = raised < kMost ? raised : kMost;
  return kNonLinearNearest[static_cast<size_t>(2.0F * limited)];
}

float fit_scale(const Traits& traits, const float* x, int n) {
  const float extreme = extreme_of(x, n);
  if (extreme == 0.0F) return 0.0F;
  const auto farthest = static_cast<float>(level_of(traits, 0));
  // In levels: the values of a table are uneven, so that more is gained by looking farther.
  const float stride = traits.table == CodeTable::kNone ? 0.1F : 1.0F;
  float best = extreme / farthest;
  double best_gain = -1.0;
  for (int step = -9; step <= 9; ++step) {
    const float inverse = inverse_or_zero(extreme / (farthest + stride * static_cast<float>(step)));
    double sum_qx = 0.0;
    double sum_qq = 0.0;
    for (int i = 0; i < n; ++i) {
      const double q = level_of(traits, nearest_code(traits, x[i] * inverse));
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

void fit_with_minima(const Traits& traits, int top, const float* x, BlockParts& parts) {
  const int runs = traits.block / traits.run;
  const int top_code = (1 << traits.bits) - 1;
  Fit fits[16];
  float top_scale = 0.0F;
  float top_minimum = 0.0F;
  for (int s = 0; s < runs; ++s) {
    fits[s] = RunFit(x + s * traits.run, traits.run, top_code).best();
    top_scale = std::max(top_scale, fits[s].scale);
    top_minimum = std::max(top_minimum, fits[s].minimum);
  }
  parts.d = scale_to_f16(top_scale / static_cast<float>(top));
  parts.dmin = scale_to_f16(top_minimum / static_cast<float>(top));
  const float d = f16_to_f32(parts.d);
  const float dmin = f16_to_f32(parts.dmin);
  for (int s = 0; s < runs; ++s) {
    const int scale = round_within(fits[s].scale * inverse_or_zero(d), 0, top);
    const int minimum = round_within(fits[s].minimum * inverse_or_zero(dmin), 0, top);
    parts.scales[s] = static_cast<int8_t>(scale);
    parts.minima[s] = static_cast<uint8_t>(minimum);
    const float inverse = inverse_or_zero(d * static_cast<float>(scale));
    const float offset = dmin * static_cast<float>(minimum);
    for (int i = s * traits.run; i < (s + 1) * traits.run; ++i) {
      parts.codes[i] = static_cast<uint8_t>(round_within((x[i] + offset) * inverse, 0, top_code));
    }
  }
}

void fit_signed(const Traits& traits, int top, const float* x, BlockParts& parts) {
  const int runs = traits.block / traits.run;
  float scales[16];
  float extreme = 0.0F;
  for (int s = 0; s < runs; ++s) {
    scales[s] = fit_scale(traits, x + s * traits.run, traits.run);
    if (std::fabs(scales[s]) > std::fabs(extreme)) extreme = scales[s];
  }
  parts.d = scale_to_f16(extreme / static_cast<float>(-top));
  const float d = f16_to_f32(parts.d);
  for (int s = 0; s < runs; ++s) {
    const int scale = round_within(scales[s] * inverse_or_zero(d), -top, top - 1);
    parts.scales[s] = static_cast<int8_t>(scale);
    const float inverse = inverse_or_zero(d * static_cast<float>(scale));
    for (int i = s * traits.run; i < (s + 1) * traits.run; ++i) {
      parts.codes[i] = nearest_code(traits, x[i] * inverse);
    }
  }
}

}  // namespace gen::quant
