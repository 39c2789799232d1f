// SPDX-License-Identifier: Apache-2.0
// One-pass selection over rows of logits. The loops keep 16 independent lanes: compilers may not
// reorder a maximum of floats, but do turn lanes into SIMD code. See selection.h.
#include "sampling/selection.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

namespace gen::sampling {
namespace {

constexpr size_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

float kth_largest(std::span<const float> values, size_t k, std::vector<float>* scratch) {
  // The scratch buffer holds the candidates for the k best; when it is full it is cut to the k
  // best, and the smallest of these becomes the bar for the rest.
  const size_t room = std::min(values.size(), std::max<size_t>(4 * k, 1024));
  scratch->clear();
  scratch->reserve(room);
  float bar = -kInfinity;
  const auto cut = [&] {
    const auto kth = scratch->begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(scratch->begin(), kth, scratch->end(), std::greater<>());
    bar = *kth;
    scratch->resize(k);
  };
  for (const float value : values) {
    if (!(value > bar)) continue;
    if (scratch->size() == room) {
      cut();
      if (!(value > bar)) continue;
    }
    scratch->push_back(value);
  }
  if (scratch->size() < k) return -kInfinity;  // only -inf was left out so far
  cut();
  return bar;
}

float row_max(std::span<const float> row) noexcept {
  // Vectors written out, since compilers do not see a maximum in the plain loop.
  using Float4 = float __attribute__((vector_size(16)));
  constexpr size_t kVectors = kLanes / 4;
  Float4 most[kVectors];
  for (Float4& one : most) one = Float4{-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (size_t k = 0; k < kVectors; ++k) {
      Float4 four;
      std::memcpy(&four, row.data() + i + 4 * k, sizeof four);
      most[k] = four > most[k] ? four : most[k];
    }
  }
  float max = -kInfinity;
  for (; i < row.size(); ++i) max = row[i] > max ? row[i] : max;
  for (const Float4& one : most) {
    for (size_t lane = 0; lane < 4; ++lane) max = one[lane] > max ? one[lane] : max;
  }
  return max;
}

}  // namespace gen::sampling
