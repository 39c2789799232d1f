// SPDX-License-Identifier: Apache-2.0
// The common part of the encoders: rounding to binary16 and to integers, and the encoding of a
// block of 32 by rounding to nearest. Fits that search are in k_fit.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tensor/half.h"

namespace gen::quant {

inline float largest_magnitude(const float* x, int n) noexcept {
  float largest = 0.0F;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

/// The element of largest magnitude, with its sign; the first of several.
inline float extreme_of(const float* x, int n) noexcept {
  float extreme = 0.0F;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

/// Nearest binary16, saturating at the largest finite value.
inline uint16_t scale_to_f16(float scale) noexcept {
  return f32_to_f16(std::clamp(scale, -65504.0F, 65504.0F));
}

/// 1 / scale, or 0 where that is not finite, so that an empty block encodes as zeros.
inline float inverse_or_zero(float scale) noexcept {
  return scale != 0.0F && std::isfinite(1.0F / scale) ? 1.0F / scale : 0.0F;
}

/// Nearest integer (ties to even) within [low, high], as a float; NaN gives `low`. The limits are
/// below 2^22: adding 1.5 * 2^23 then leaves no room for a fraction. Compilers vectorise this where
/// they would call a function for std::nearbyint.
inline float round_float_within(float x, float low, float high) noexcept {
  const float raised = x > low ? x : low;
  const float limited = raised < high ? raised : high;
  return (limited + 0x1.8p23F) - 0x1.8p23F;
}

inline int round_within(float x, int low, int high) noexcept {
  return static_cast<int>(round_float_within(x, static_cast<float>(low), static_cast<float>(high)));
}

/// 32 weights to w = d * (code - zero), code in [0, 2 * zero): the extreme is at code 0. Returns d
/// as binary16.
inline uint16_t round_signed(const float* x, int zero, uint8_t* codes) noexcept {
  const uint16_t d = scale_to_f16(extreme_of(x, 32) / static_cast<float>(-zero));
  const float inverse = inverse_or_zero(f16_to_f32(d));
  for (int i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(round_within(x[i] * inverse, -zero, zero - 1) + zero);
  }
  return d;
}

/// 32 weights to w = d * code + m, code in [0, top]: the least at code 0, the largest at `top`.
inline void round_between(const float* x, int top, uint16_t* d, uint16_t* m,
                          uint8_t* codes) noexcept {
  const auto [least, most] = std::minmax_element(x, x + 32);
  // Divided separately, because the difference of two huge weights would overflow.
  *d = scale_to_f16(*most / static_cast<float>(top) - *least / static_cast<float>(top));
  *m = scale_to_f16(*least);
  const float inverse = inverse_or_zero(f16_to_f32(*d));
  const float offset = f16_to_f32(*m);
  for (int i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(round_within((x[i] - offset) * inverse, 0, top));
  }
}

}  // namespace gen::quant
