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

}  // namespace gen::quant
