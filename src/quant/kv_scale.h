// SPDX-License-Identifier: Apache-2.0
// The common part of the key and value codecs with one scale.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace gen::quant {

/// The largest magnitude of n finite numbers. Magnitudes are compared by their bits, which have the
/// same order, because compilers vectorise integers where they would not vectorise floats.
inline float kv_largest(const float* x, size_t n) noexcept {
  int32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF);
  }
  return std::bit_cast<float>(largest);
}

/// Calls put(i, x[i] / scale) for each element; scale > 0. It multiplies by the inverse, except for
/// scales so small that the inverse overflows.
template <typename F>
void kv_scaled(const float* x, size_t n, float scale, F&& put) noexcept {
  const float inverse = 1.0F / scale;
  if (std::isfinite(inverse)) {
    for (size_t i = 0; i < n; ++i) put(i, x[i] * inverse);
  } else {
    for (size_t i = 0; i < n; ++i) put(i, x[i] / scale);
  }
}

}  // namespace gen::quant
