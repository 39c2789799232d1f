// SPDX-License-Identifier: Apache-2.0
// Proves the one-pass selections against sorting, at sizes around their lanes and buffers.
#include "sampling/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/rng.h"
#include "base/row_peak.h"

namespace gen::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Few distinct values, so that ties are everywhere, and some -inf.
std::vector<float> row(size_t size, uint64_t seed, int levels) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) {
    const double u = uniform_double(seed, 0, i);
    values[i] = u < 0.05 ? -kInf : static_cast<float>(static_cast<int>(u * levels)) - 10.0F;
  }
  return values;
}

TEST(KthLargest, EqualsSorting) {
  std::vector<float> scratch;
  for (const int levels : {3, 50, 1 << 20}) {
    for (const size_t size : {1U, 2U, 15U, 16U, 17U, 100U, 1023U, 1024U, 1025U, 5000U, 20000U}) {
      const std::vector<float> values = row(size, size, levels);
      std::vector<float> sorted = values;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      for (const size_t k :
           {size_t{1}, size_t{2}, size_t{40}, size_t{300}, size / 2, size - 1, size}) {
        if (k < 1 || k > size) continue;
        ASSERT_EQ(kth_largest(values, k, &scratch), sorted[k - 1]) << size << " " << k;
      }
    }
  }
}

TEST(KthLargest, RisingAndFallingRows) {
  std::vector<float> scratch;
  std::vector<float> values(10000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  EXPECT_EQ(kth_largest(values, 40, &scratch), 9960.0F);
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(kth_largest(values, 40, &scratch), 9960.0F);
}

TEST(RowMax, AtEverySizeAndPlace) {
  EXPECT_EQ(row_max({}), -kInf);
  for (size_t size = 1; size < 70; ++size) {
    for (size_t at = 0; at < size; ++at) {
      std::vector<float> values(size, -3.0F);
      values[at] = -2.0F;
      ASSERT_EQ(row_max(values), -2.0F);
      ASSERT_EQ(first_index_of(values, -2.0F), at);
    }
  }
}

TEST(FirstNotFinite, FindsNanAndInfinityButNotMinusInfinity) {
  for (size_t size = 1; size < 70; ++size) {
    std::vector<float> values(size, -kInf);
    ASSERT_EQ(first_not_finite(values), size);
    for (size_t at = 0; at < size; ++at) {
      for (const float bad : {kInf, std::numeric_limits<float>::quiet_NaN()}) {
        values[at] = bad;
        ASSERT_EQ(first_not_finite(values), at);
      }
      values[at] = 0.0F;
    }
  }
}

}  // namespace
}  // namespace gen::sampling
