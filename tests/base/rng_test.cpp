// SPDX-License-Identifier: Apache-2.0
// Proves Philox-4x32-10 by the known answers published with the paper's reference implementation
// (Random123, kat_vectors), and the double's layout, range and spread.
#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace gen {
namespace {

using Block = std::array<uint32_t, 4>;

TEST(Philox, PublishedKnownAnswers) {
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox4x32({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
            (Block{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

// The double is built from the first two words of the block above, so these follow from the
// published vectors: word 1 is the high half.
TEST(UniformDouble, LayoutIsFrozen) {
  EXPECT_EQ(uniform_double(0, 0, 0), std::floor(0xE169C58D6627E8D5 / 2048.0L) * 0x1p-53);
  EXPECT_EQ(uniform_double(0x299F31D0A4093822, 0x0370734413198A2E, 0x85A308D3243F6A88),
            std::floor(0x94FDCCEBD16CFE09 / 2048.0L) * 0x1p-53);
}

TEST(UniformDouble, StaysBelowOneAndIsSpread) {
  constexpr int kDraws = 100000;
  double sum = 0;
  double sum_of_squares = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double x = uniform_double(7, 3, i);
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    sum += x;
    sum_of_squares += x * x;
  }
  // Mean 1/2 and variance 1/12; the bounds are six standard errors wide.
  EXPECT_NEAR(sum / kDraws, 0.5, 6 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(sum_of_squares / kDraws, 1.0 / 3, 6 * std::sqrt(4.0 / 45 / kDraws));
}

TEST(UniformDouble, EveryArgumentMatters) {
  std::set<double> seen;
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63}) {
    seen.insert(uniform_double(value, 5, 9));
    seen.insert(uniform_double(5, value, 9));
    seen.insert(uniform_double(5, 9, value));
  }
  EXPECT_EQ(seen.size(), 12U);
}

}  // namespace
}  // namespace gen
