// SPDX-License-Identifier: Apache-2.0
// The largest value of a row of floats in one pass, and whether the row is valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

namespace gen {

/// Of some values that follow one another.
struct Peak {
  float max = -std::numeric_limits<float>::infinity();
  bool bad = false;  // holds a NaN or +inf; `max` is then meaningless
};
constexpr size_t kPeakBlock = 128;

// Keeps several maxima, because each depends on the one before. A NaN is never larger, so the
// maxima alone would miss it.
inline Peak whole_block_peak(const float* values) noexcept {
  // Compilers lower these for any CPU.
  using Float4 = float __attribute__((vector_size(16)));
  using Flags4 = int32_t __attribute__((vector_size(16)));
  const auto load = [&](size_t i) {
    Float4 four;
    std::memcpy(&four, values + i, sizeof four);
    return four;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr size_t kMany = 4;
  constexpr Float4 kEnd = {kInfinity, kInfinity, kInfinity, kInfinity};
  Float4 max[kMany];
  Flags4 fine = {-1, -1, -1, -1};
  for (size_t k = 0; k < kMany; ++k) {
    max[k] = load(4 * k);
    fine &= max[k] < kEnd;
  }
  for (size_t i = 4 * kMany; i < kPeakBlock; i += 4 * kMany) {
    for (size_t k = 0; k < kMany; ++k) {
      const Float4 four = load(i + 4 * k);
      max[k] = four > max[k] ? four : max[k];
      fine &= four < kEnd;
    }
  }
  for (size_t half = kMany / 2; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) max[k] = max[k + half] > max[k] ? max[k + half] : max[k];
  }
  Peak peak;
  for (size_t lane = 0; lane < 4; ++lane) {
    peak.max = max[0][lane] > peak.max ? max[0][lane] : peak.max;
    peak.bad |= fine[lane] == 0;
  }
  return peak;
}

/// Of any number of values; kPeakBlock of them are quickest.
inline Peak peak_of(std::span<const float> values) noexcept {
  if (values.size() == kPeakBlock) return whole_block_peak(values.data());
  Peak peak;
  for (const float value : values) {
    peak.max = value > peak.max ? value : peak.max;
    peak.bad |= !(value < std::numeric_limits<float>::infinity());
  }
  return peak;
}

/// Index of the largest value, the first of equal ones, in one pass that keeps nothing; `max`
/// receives it. `bad` receives the first index of a NaN or +inf, or row.size(); the rest then means
/// nothing. An empty row gives 0 and -inf.
size_t argmax(std::span<const float> row, float* max, size_t* bad) noexcept;

/// First index that holds `value`, or row.size().
size_t first_index_of(std::span<const float> row, float value) noexcept;

/// First index of a NaN or +inf, or row.size().
size_t first_not_finite(std::span<const float> row) noexcept;

}  // namespace gen
