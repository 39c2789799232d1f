// SPDX-License-Identifier: Apache-2.0
// See row_peak.h.
#include "base/row_peak.h"

#include <algorithm>

namespace gen {
namespace {

constexpr size_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::span<const float> block_of(std::span<const float> row, size_t block) noexcept {
  const size_t begin = block * kPeakBlock;
  return row.subspan(begin, std::min(kPeakBlock, row.size() - begin));
}

}  // namespace

size_t argmax(std::span<const float> row, float* max, size_t* bad) noexcept {
  const size_t blocks = (row.size() + kPeakBlock - 1) / kPeakBlock;
  size_t best = 0;
  *max = -kInfinity;
  *bad = row.size();
  for (size_t i = 0; i < blocks; ++i) {
    const Peak peak = peak_of(block_of(row, i));
    if (peak.bad) {
      *bad = i * kPeakBlock + first_not_finite(block_of(row, i));
      return 0;
    }
    if (peak.max > *max) {
      *max = peak.max;
      best = i;
    }
  }
  if (blocks == 0) return 0;
  return best * kPeakBlock + first_index_of(block_of(row, best), *max);
}

size_t first_index_of(std::span<const float> row, float value) noexcept {
  return static_cast<size_t>(std::find(row.begin(), row.end(), value) - row.begin());
}

size_t first_not_finite(std::span<const float> row) noexcept {
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    int bad = 0;
    for (size_t lane = 0; lane < kLanes; ++lane)
      bad |= static_cast<int>(!(row[i + lane] < kInfinity));
    if (bad != 0) break;
  }
  for (; i < row.size(); ++i) {
    if (!(row[i] < kInfinity)) return i;
  }
  return row.size();
}

}  // namespace gen
