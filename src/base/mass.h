// SPDX-License-Identifier: Apache-2.0
// Sums of the weights of a vocabulary's tokens, in the order of mass_slices.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mass_slices.h"
#include "base/portable_math.h"

namespace gen {

/// The lanes of a slice.
class MassLanes {
 public:
  void add(size_t token, double weight) noexcept { lanes_[token % kMassLanes] += weight; }
  /// Their sum; they are empty then.
  double take() noexcept {
    for (int32_t half = kMassLanes / 2; half > 0; half /= 2) {
      for (int32_t i = 0; i < half; ++i) lanes_[i] += lanes_[i + half];
    }
    const double sum = lanes_[0];
    std::fill(lanes_, lanes_ + kMassLanes, 0.0);
    return sum;
  }

 private:
  double lanes_[kMassLanes] = {};
};

/// Of tokens in ascending order; tokens left out weigh nothing.
class MassSum {
 public:
  void add(int32_t token, double weight) noexcept {
    if (token / kMassSlice != slice_) {
      total_ += lanes_.take();
      slice_ = token / kMassSlice;
    }
    lanes_.add(static_cast<size_t>(token), weight);
  }
  [[nodiscard]] double total() noexcept { return total_ += lanes_.take(); }

 private:
  MassLanes lanes_;
  int32_t slice_ = 0;
  double total_ = 0.0;
};

[[nodiscard]] inline double mass_total(std::span<const double> slices) noexcept {
  double total = 0.0;
  for (const double slice : slices) total += slice;
  return total;
}

/// The slice at which the sum of slices first exceeds `target`, and the sum of those before it; the
/// number of slices if there is none.
struct MassPlace {
  size_t slice = 0;
  double before = 0.0;
};
[[nodiscard]] inline MassPlace mass_place(std::span<const double> slices, double target) noexcept {
  MassPlace place;
  while (place.slice < slices.size() && !(place.before + slices[place.slice] > target)) {
    place.before += slices[place.slice++];
  }
  return place;
}

/// slices[p] is the sum over its tokens of exp((logit(t) - max) / temperature), with no logit above
/// max. `slices` are mass_slices(n).
template <typename Logit>
void weigh_slices(size_t n, const Logit& logit, float max, double temperature,
                  std::span<double> slices) {
  constexpr size_t kBlock = 128;  // so that the exponentials are a loop over plain arrays
  const double top = static_cast<double>(max);
  double block[kBlock];
  for (size_t slice = 0; slice < slices.size(); ++slice) {
    MassLanes lanes;
    const size_t end = std::min(n, (slice + 1) * kMassSlice);
    for (size_t begin = slice * kMassSlice; begin < end; begin += kBlock) {
      const size_t count = std::min(kBlock, end - begin);
      for (size_t i = 0; i < count; ++i) block[i] = static_cast<double>(logit(begin + i)) - top;
      if (temperature != 1.0) {
        for (size_t i = 0; i < count; ++i) block[i] /= temperature;
      }
      std::fill(block + count, block + kBlock, -1e9);  // weighs nothing
      portable_exp(block, kBlock);
      for (size_t i = 0; i < kBlock; ++i) lanes.add(i, block[i]);
    }
    slices[slice] = lanes.take();
  }
}

}  // namespace gen
