// SPDX-License-Identifier: Apache-2.0
// The fits. With minima it alternates: given a slope, round the weights; given the rounded weights,
// solve the two-by-two least squares for slope and offset; from several first slopes, and the best
// is kept. Without minima it tries scales around those that put the extreme on an end of the levels
// and keeps the least-squares scale of the best rounding. With codes of three to five bits all
// weights count alike: counting larger ones more made the story model's perplexity worse. See
// k_fit.h.
#include "quant/k_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "quant/decode.h"
#include "quant/rounding.h"
#include "quant/shares.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr int kMaxRun = 32;
constexpr int kTwoBits = 3;  // the largest code of two bits
constexpr int kLanes = 8;    // sums in lanes, which compilers make vectors of

// x is approximated by scale * q - minimum, both not negative.
struct Fit {
  float scale = 0.0F;
  float minimum = 0.0F;
  float error = 0.0F;
};

// The weights of one run, of codes 0 to `top`. They are kept as distances from the lowest, so that
// the sums below lose no digits to an offset that all share. `offset`: minima may be negative.
class RunFit {
 public:
  RunFit(const float* x, const float* importance, int n, int top, bool offset = false);

  [[nodiscard]] Fit best() const;
  // The error of codes rounded for a scale and minimum, kept as they are.
  [[nodiscard]] float error_of(float scale, float minimum) const;

 private:
  // Sums over the codes that a fit gives.
  struct Sums {
    float q = 0.0F;
    float qq = 0.0F;
    float qx = 0.0F;
  };
  [[nodiscard]] Sums round(float scale, float shift) const;
  [[nodiscard]] float error_with(const Sums& sums, float scale, float shift) const;
  [[nodiscard]] Fit solve(const Sums& sums) const;

  void try_from(float scale, float shift, Fit& best) const;

  int n_;
  float top_;
  bool offset_;
  bool weighted_;
  float low_ = 0.0F;    // of the weights and, unless offset_, of 0
  float width_ = 0.0F;  // from there to the largest
  float above_[kMaxRun];
  float shares_[kMaxRun];
  float total_ = 0.0F;  // of shares_
  float sum_ = 0.0F;    // of shares_ * above_
  float sum_of_squares_ = 0.0F;
};

RunFit::RunFit(const float* x, const float* importance, int n, int top, bool offset)
    : n_(n), top_(static_cast<float>(top)), offset_(offset), weighted_(importance != nullptr) {
  const auto [least, most] = std::minmax_element(x, x + n);
  low_ = offset ? *least : std::min(*least, 0.0F);
  width_ = (offset ? *most : std::max(*most, 0.0F)) - low_;
  if (top <= kTwoBits) {
    shares_by_size(x, importance, n, shares_);
  } else {
    shares_of(importance, n, shares_);
  }
  for (int i = 0; i < n; ++i) {
    above_[i] = x[i] - low_;
    total_ += shares_[i];
    sum_ += shares_[i] * above_[i];
    sum_of_squares_ += shares_[i] * (above_[i] * above_[i]);
  }
}

// Codes of above = scale * code - shift; shift is the minimum plus low, so that 0 is usual.
RunFit::Sums RunFit::round(float scale, float shift) const {
  const float inverse = inverse_or_zero(scale);
  float q_lanes[kLanes] = {};
  float qq_lanes[kLanes] = {};
  float qx_lanes[kLanes] = {};
  for (int i = 0; i < n_; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const float q = round_float_within((above_[i + j] + shift) * inverse, 0.0F, top_);
      const float shared = shares_[i + j] * q;
      q_lanes[j] += shared;
      qq_lanes[j] += shared * q;
      qx_lanes[j] += shared * above_[i + j];
    }
  }
  Sums sums;
  for (int j = 0; j < kLanes; ++j) {
    sums.q += q_lanes[j];
    sums.qq += qq_lanes[j];
    sums.qx += qx_lanes[j];
  }
  return sums;
}

// The sum of share * (scale * code - shift - above)^2.
float RunFit::error_with(const Sums& sums, float scale, float shift) const {
  return scale * (scale * sums.qq - 2.0F * (shift * sums.q + sums.qx)) +
         shift * (shift * total_ + 2.0F * sum_) + sum_of_squares_;
}

float RunFit::error_of(float scale, float minimum) const {
  const float shift = minimum + low_;
  return error_with(round(scale, shift), scale, shift);
}

// Least squares for scale and minimum, with codes held.
Fit RunFit::solve(const Sums& sums) const {
  const float determinant = total_ * sums.qq - sums.q * sums.q;
  if (!(determinant > 0.0F)) return {};
  float scale = (total_ * sums.qx - sums.q * sum_) / determinant;
  float shift = (sums.q * sums.qx - sums.qq * sum_) / determinant;
  if (!offset_ && shift < low_) {  // the format cannot add, so the best without a minimum
    shift = low_;
    scale = sums.qq > 0.0F ? (sums.qx + low_ * sums.q) / sums.qq : 0.0F;
  }
  if (!(scale > 0.0F)) return {};
  return {scale, shift - low_, error_with(sums, scale, shift)};
}

Fit RunFit::best() const {
  if (!(width_ > 0.0F)) return {0.0F, 0.0F - low_, 0.0F};
  Fit best = {width_ / top_, -low_, error_of(width_ / top_, -low_)};
  // Levels from a little fewer to a little more than there are over the full width: the outermost
  // weights may saturate if the others gain by it.
  for (int step = -8; step <= 16; ++step) {
    try_from(width_ / (top_ + 0.125F * static_cast<float>(step)), 0.0F, best);
  }
  if (!weighted_) return best;
  // Weights that count little may saturate on both sides, by far.
  constexpr float kShares[] = {1.0F, 0.85F, 0.7F, 0.55F, 0.4F, 0.25F, 0.12F, 0.05F};
  for (const float share : kShares) {
    for (const float below : {0.0F, 0.25F, 0.5F, 0.75F, 1.0F}) {
      const float first = (1.0F - share) * below * width_;
      try_from(share * width_ / top_, -first, best);
    }
  }
  return best;
}

void RunFit::try_from(float scale, float shift, Fit& best) const {
  Fit trial = {scale, shift - low_, 0.0F};
  for (int pass = 0; pass < (weighted_ ? 4 : 2); ++pass) {
    trial = solve(round(trial.scale, trial.minimum + low_));
    if (!(trial.scale > 0.0F)) break;
    if (trial.error < best.error) best = trial;
  }
}

// For twice an offset level, truncated to an integer: the nearest code of a table. Borders between
// codes are halves, so the truncation loses nothing.
template <size_t kSize>
constexpr std::array<uint8_t, kSize> nearest_codes(const uint8_t (&values)[16]) {
  std::array<uint8_t, kSize> nearest = {};
  for (int twice = 0; twice < static_cast<int>(kSize); ++twice) {
    int least = 1 << 20;
    for (int code = 0; code < 16; ++code) {
      const int difference = 2 * twice + 1 - 4 * values[code];
      const int distance = difference < 0 ? -difference : difference;
      if (distance < least) {
        least = distance;
        nearest[static_cast<size_t>(twice)] = static_cast<uint8_t>(code);
      }
    }
  }
  return nearest;
}

// Rounding to the levels of a type.
template <CodeTable kTable>
class Levels {
 public:
  explicit Levels(const Traits& traits)
      : zero_(static_cast<float>(traits.zero)),
        top_(static_cast<float>((1 << traits.bits) - 1 - traits.zero)) {}

  [[nodiscard]] uint8_t code(float level) const {
    if constexpr (kTable == CodeTable::kNone) {
      return static_cast<uint8_t>(round_float_within(level, -zero_, top_) + zero_);
    } else {
      constexpr float kMost = static_cast<float>(kNearest.size() - 1) / 2.0F;
      const float value = level + zero_;
      const float raised = value > 0.0F ? value : 0.0F;
      const float limited = raised < kMost ? raised : kMost;
      return kNearest[static_cast<size_t>(static_cast<int>(2.0F * limited))];
    }
  }

  // The nearest level.
  [[nodiscard]] float round(float level) const {
    if constexpr (kTable == CodeTable::kNone) {
      return round_float_within(level, -zero_, top_);
    } else {
      return static_cast<float>(kValues[code(level)]) - zero_;
    }
  }

 private:
  static constexpr const uint8_t (&kValues)[16] = kTable == CodeTable::kE2M1 ? kE2M1Values
                                                                             : kNonLinearValues;
  static constexpr auto kNearest = nearest_codes < kTable == CodeTable::kE2M1 ? 57
                                                                              : 483 > (kValues);

  float zero_;
  float top_;
};

template <typename Function>
auto with_levels(const Traits& traits, Function&& function) {
  switch (traits.table) {
    case CodeTable::kNonLinear:
      return function(Levels<CodeTable::kNonLinear>(traits));
    case CodeTable::kE2M1:
      return function(Levels<CodeTable::kE2M1>(traits));
    default:  // the others have fits of their own
      break;
  }
  return function(Levels<CodeTable::kNone>(traits));
}

// The best scale for the levels of a first scale, and its gain.
struct Gain {
  float scale = 0.0F;
  float gain = -1.0F;
};

// Where codes are fine enough, the large weights, which cannot hide in the rounding, count more.
constexpr bool by_size(const Traits& traits) { return traits.bits == 6; }

// What each weight of a run counts: its importance, or else the square of its size in units of 1 /
// unit, or all alike.
void run_shares(const Traits& traits, const float* x, const float* importance, int n, float unit,
                float* shares) {
  shares_of(importance, n, shares);
  if (importance != nullptr || !by_size(traits)) return;
  for (int i = 0; i < n; ++i) shares[i] = (x[i] * unit) * (x[i] * unit);
}

template <typename SomeLevels>
Gain gain_of(const SomeLevels& levels, const float* x, const float* shares, int n, float inverse) {
  float qx_lanes[kLanes] = {};
  float qq_lanes[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const float q = levels.round(x[i + j] * inverse);
      qx_lanes[j] += shares[i + j] * q * x[i + j];
      qq_lanes[j] += shares[i + j] * q * q;
    }
  }
  float sum_qx = 0.0F;
  float sum_qq = 0.0F;
  for (int j = 0; j < kLanes; ++j) {
    sum_qx += qx_lanes[j];
    sum_qq += qq_lanes[j];
  }
  if (!(sum_qq > 0.0F)) return {};
  // With the best scale for these levels the squared error falls by sum_qx^2 / sum_qq.
  return {sum_qx / sum_qq, sum_qx * (sum_qx / sum_qq)};
}

template <typename SomeLevels>
float best_scale(const SomeLevels& levels, const Traits& traits, const float* x,
                 const float* importance, int n) {
  const float extreme = extreme_of(x, n);
  if (extreme == 0.0F) return 0.0F;
  float shares[kMaxRun];
  run_shares(traits, x, importance, n, inverse_or_zero(extreme), shares);
  const int ends[] = {level_of(traits, 0), level_of(traits, (1 << traits.bits) - 1)};
  Gain best;
  for (const int end : ends) {
    for (int step = -9; step <= 9; ++step) {
      const float level = static_cast<float>(end) * (1.0F + 0.01F * static_cast<float>(step));
      const Gain gain = gain_of(levels, x, shares, n, inverse_or_zero(extreme / level));
      if (gain.gain > best.gain) best = gain;
    }
    if (importance == nullptr) continue;
    // Weights that count little may saturate, by far.
    float level = 0.9F * static_cast<float>(end);
    for (int step = 0; step < 60; ++step) {
      level *= 1.05F;
      Gain gain = gain_of(levels, x, shares, n, inverse_or_zero(extreme / level));
      for (int pass = 0; pass < 3 && gain.gain > best.gain; ++pass) {
        best = gain;
        gain = gain_of(levels, x, shares, n, inverse_or_zero(gain.scale));
      }
    }
    const float middle = best.scale;
    for (int step = -10; step <= 10; ++step) {
      const float scale = middle * (1.0F + 0.004F * static_cast<float>(step));
      const Gain gain = gain_of(levels, x, shares, n, inverse_or_zero(scale));
      if (gain.gain > best.gain) best = gain;
    }
  }
  return best.gain > 0.0F ? best.scale : extreme / static_cast<float>(ends[0]);
}

// The squared error of a run of n weights rounded with `scale`, in units of 1 / unit.
template <typename SomeLevels>
float error_with_scale(const SomeLevels& levels, const float* x, const float* shares, int n,
                       float scale, float unit) {
  const float inverse = inverse_or_zero(scale);
  float lanes[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const float miss = (levels.round(x[i + j] * inverse) * scale - x[i + j]) * unit;
      lanes[j] += shares[i + j] * miss * miss;
    }
  }
  float sum = 0.0F;
  for (const float lane : lanes) sum += lane;
  return sum;
}

// The scale of a run in units of d: the one nearest to `wanted`, or an adjacent one that rounds
// better.
int round_scale(const Traits& traits, int top, const float* x, const float* importance, float d,
                float wanted) {
  const int near = round_within(wanted * inverse_or_zero(d), -top, top - 1);
  const float unit = inverse_or_zero(extreme_of(x, traits.run));
  float shares[kMaxRun];
  run_shares(traits, x, importance, traits.run, unit, shares);
  return with_levels(traits, [&](const auto& levels) {
    int best = near;
    float least = std::numeric_limits<float>::infinity();
    for (const int scale : {near, near - 1, near + 1}) {
      if (scale < -top || scale > top - 1) continue;
      const float used = d * static_cast<float>(scale);
      const float error = error_with_scale(levels, x, shares, traits.run, used, unit);
      if (error < least) {
        least = error;
        best = scale;
      }
    }
    return best;
  });
}

}  // namespace

uint8_t nearest_code(const Traits& traits, float level) noexcept {
  return with_levels(traits, [&](const auto& levels) { return levels.code(level); });
}

float fit_scale(const Traits& traits, const float* x, const float* importance, int n) {
  return with_levels(
      traits, [&](const auto& levels) { return best_scale(levels, traits, x, importance, n); });
}

uint16_t fit_codes(const Traits& traits, const float* x, const float* importance, int n,
                   uint8_t* codes) {
  const uint16_t d = scale_to_f16(fit_scale(traits, x, importance, n));
  const float inverse = inverse_or_zero(f16_to_f32(d));
  for (int i = 0; i < n; ++i) codes[i] = nearest_code(traits, x[i] * inverse);
  return d;
}

void fit_between(const float* x, const float* importance, int top, uint16_t* d, uint16_t* m,
                 uint8_t* codes) {
  const Fit fit = RunFit(x, importance, 32, top, true).best();
  *d = scale_to_f16(fit.scale);
  *m = scale_to_f16(-fit.minimum);
  const float inverse = inverse_or_zero(f16_to_f32(*d));
  const float offset = f16_to_f32(*m);
  for (int i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(round_within((x[i] - offset) * inverse, 0, top));
  }
}

void fit_with_minima(const Traits& traits, int top, const float* x, const float* importance,
                     BlockParts& parts) {
  const int runs = traits.block / traits.run;
  const int top_code = (1 << traits.bits) - 1;
  Fit fits[16];
  float top_scale = 0.0F;
  float top_minimum = 0.0F;
  const auto of_run = [&](int s) {
    return importance != nullptr ? importance + s * traits.run : nullptr;
  };
  for (int s = 0; s < runs; ++s) {
    fits[s] = RunFit(x + s * traits.run, of_run(s), traits.run, top_code).best();
    top_scale = std::max(top_scale, fits[s].scale);
    top_minimum = std::max(top_minimum, fits[s].minimum);
  }
  parts.d = scale_to_f16(top_scale / static_cast<float>(top));
  parts.dmin = scale_to_f16(top_minimum / static_cast<float>(top));
  const float d = f16_to_f32(parts.d);
  const float dmin = f16_to_f32(parts.dmin);
  for (int s = 0; s < runs; ++s) {
    const RunFit run(x + s * traits.run, of_run(s), traits.run, top_code);
    const int near_scale = round_within(fits[s].scale * inverse_or_zero(d), 0, top);
    const int near_minimum = round_within(fits[s].minimum * inverse_or_zero(dmin), 0, top);
    // A scale and a minimum are rounded together: one can compensate for the error of the other.
    int scale = near_scale;
    int minimum = near_minimum;
    float least = run.error_of(d * static_cast<float>(scale), dmin * static_cast<float>(minimum));
    for (int a = std::max(near_scale - 1, 0); a <= std::min(near_scale + 1, top); ++a) {
      for (int b = std::max(near_minimum - 1, 0); b <= std::min(near_minimum + 1, top); ++b) {
        const float error = run.error_of(d * static_cast<float>(a), dmin * static_cast<float>(b));
        if (error < least) {
          least = error;
          scale = a;
          minimum = b;
        }
      }
    }
    parts.scales[s] = static_cast<int8_t>(scale);
    parts.minima[s] = static_cast<uint8_t>(minimum);
    const float inverse = inverse_or_zero(d * static_cast<float>(scale));
    const float offset = dmin * static_cast<float>(minimum);
    for (int i = s * traits.run; i < (s + 1) * traits.run; ++i) {
      parts.codes[i] = static_cast<uint8_t>(round_within((x[i] + offset) * inverse, 0, top_code));
    }
  }
}

void fit_signed(const Traits& traits, int top, const float* x, const float* importance,
                BlockParts& parts) {
  const int runs = traits.block / traits.run;
  float scales[16];
  float extreme = 0.0F;
  const auto of_run = [&](int s) {
    return importance != nullptr ? importance + s * traits.run : nullptr;
  };
  for (int s = 0; s < runs; ++s) {
    scales[s] = fit_scale(traits, x + s * traits.run, of_run(s), traits.run);
    if (std::fabs(scales[s]) > std::fabs(extreme)) extreme = scales[s];
  }
  parts.d = scale_to_f16(extreme / static_cast<float>(-top));
  const float d = f16_to_f32(parts.d);
  for (int s = 0; s < runs; ++s) {
    const int scale = round_scale(traits, top, x + s * traits.run, of_run(s), d, scales[s]);
    parts.scales[s] = static_cast<int8_t>(scale);
    const float inverse = inverse_or_zero(d * static_cast<float>(scale));
    for (int i = s * traits.run; i < (s + 1) * traits.run; ++i) {
      parts.codes[i] = nearest_code(traits, x[i] * inverse);
    }
  }
}

}  // namespace gen::quant
