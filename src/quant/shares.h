// SPDX-License-Identifier: Apache-2.0
// What each weight of a block counts in the error that an encoder makes small.
#pragma once

#include <algorithm>
#include <cmath>

namespace gen::quant {

/// Importances as shares of the largest; all 1 without importances (null) and where none is a
/// positive finite number. Those that are not positive count nothing.
inline void shares_of(const float* importance, int n, float* shares) noexcept {
  float largest = 0.0F;
  for (int i = 0; importance != nullptr && i < n; ++i) {
    if (importance[i] > largest) largest = importance[i];
  }
  if (!(largest > 0.0F) || !std::isfinite(largest)) {
    std::fill_n(shares, n, 1.0F);
    return;
  }
  for (int i = 0; i < n; ++i) {
    shares[i] = importance[i] > 0.0F ? importance[i] / largest : 0.0F;
  }
}

/// The same times the square of each weight plus the mean of the squares, again as shares of the
/// largest: how types below 3 bits count, in which errors of large weights do most harm.
inline void shares_by_size(const float* x, const float* importance, int n, float* shares) noexcept {
  shares_of(importance, n, shares);
  double mean = 0.0;
  double largest = 0.0;
  for (int i = 0; i < n; ++i) {
    const double squared = double{x[i]} * double{x[i]};
    mean += squared / n;
    largest = std::max(largest, squared);
  }
  if (largest == 0.0) return;
  for (int i = 0; i < n; ++i) {
    const double size = (mean + double{x[i]} * double{x[i]}) / (mean + largest);
    shares[i] = static_cast<float>(double{shares[i]} * size);
  }
}

}  // namespace gen::quant
