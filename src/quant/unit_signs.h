// SPDX-License-Identifier: Apache-2.0
// The signs of eight weights beside a codebook of magnitudes, for encoders. Some types store seven
// and have an even number of set ones.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gen::quant {

/// Eight weights as magnitudes and signs.
struct UnitSigns {
  float magnitudes[8];
  uint32_t negative = 0;  // bit i: weight i

  explicit UnitSigns(const float* x) noexcept {
    for (int i = 0; i < 8; ++i) {
      magnitudes[i] = std::fabs(x[i]);
      if (x[i] < 0.0F) negative |= 1U << i;
    }
  }

  [[nodiscard]] bool odd() const noexcept { return std::popcount(negative) % 2 != 0; }

  /// The signs with that of one weight turned, which loses least where level[i] is what stands for
  /// weight i. Only weights [first, last) may turn.
  [[nodiscard]] uint32_t turned(const float* shares, const float* levels, int first,
                                int last) const noexcept {
    int which = first;
    float least = 0.0F;
    for (int i = first; i < last; ++i) {
      const float loss = shares[i] * magnitudes[i] * levels[i];
      if (i == first || loss < least) {
        least = loss;
        which = i;
      }
    }
    return negative ^ (1U << which);
  }
};

}  // namespace gen::quant
