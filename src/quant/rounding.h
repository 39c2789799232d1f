// SPDX-License-Identifier: Apache-2.0
// Small helpers that the encoders share.
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

/// Nearest binary16, saturating at the largest finite value.
inline uint16_t scale_to_f16(float scale) noexcept {
  return f32_to_f16(std::clamp(scale, -65504.0F, 65504.0F));
}

/// 1 / scale, or 0 where that is not finite, so that an empty block encodes as zeros.
inline float inverse_or_zero(float scale) noexcept {
  return scale != 0.0F && std::isfinite(1.0F / scale) ? 1.0F / scale : 0.0F;
}

/// Nearest integer (ties to even) within [low, high].
inline int round_within(float x, int low, int high) noexcept {
  const float limited = std::clamp(x, static_cast<float>(low), static_cast<float>(high));
  return static_cast<int>(std::nearbyint(limited));
}

}  // namespace gen::quant
