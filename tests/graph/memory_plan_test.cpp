// SPDX-License-Identifier: Apache-2.0
// Proves that values alive at the same time never share bytes, whatever the lifetimes are, that
// offsets are aligned, and that values of disjoint lives do share.
#include "graph/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gen::graph {
namespace {

TEST(MemoryPlan, NothingNeedsNothing) {
  const Placement placement = place({});
  EXPECT_EQ(placement.row_bytes, 0U);
  EXPECT_TRUE(placement.offsets.empty());
}

TEST(MemoryPlan, ReusesWhatIsFree) {
  // A chain in which each value lives until the next is written needs two places, not four.
  const Lifetime chain[] = {{0, 1, 64}, {1, 2, 64}, {2, 3, 64}, {3, 4, 64}};
  EXPECT_EQ(place(chain).row_bytes, 128U);
}

TEST(MemoryPlan, TouchingLivesDoNotShare) {
  const Lifetime lives[] = {{0, 3, 64}, {3, 5, 64}};
  EXPECT_EQ(place(lives).row_bytes, 128U);
}

TEST(MemoryPlan, FillsGaps) {
  // The small value fits below the second large one once the first is gone.
  const Lifetime lives[] = {{0, 2, 640}, {1, 6, 320}, {3, 5, 640}, {3, 5, 64}};
  EXPECT_LE(place(lives).row_bytes, 640U + 320U + 64U);
}

TEST(MemoryPlan, RandomLivesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> lives(random() % 40);
    size_t sum = 0;
    for (Lifetime& life : lives) {
      life.first = static_cast<int32_t>(random() % 30);
      life.last = life.first + static_cast<int32_t>(random() % 10);
      life.row_bytes = 64 * (1 + random() % 20);
      sum += life.row_bytes;
    }
    const Placement placement = place(lives);
    ASSERT_EQ(placement.offsets.size(), lives.size());
    EXPECT_LE(placement.row_bytes, sum);
    size_t fullest = 0;  // no placement can be smaller than what is alive at once
    for (int32_t step = 0; step < 40; ++step) {
      size_t alive = 0;
      for (const Lifetime& life : lives) {
        if (life.first <= step && step <= life.last) alive += life.row_bytes;
      }
      fullest = std::max(fullest, alive);
    }
    EXPECT_GE(placement.row_bytes, fullest);
    for (size_t a = 0; a < lives.size(); ++a) {
      EXPECT_EQ(placement.offsets[a] % 64, 0U);
      EXPECT_LE(placement.offsets[a] + lives[a].row_bytes, placement.row_bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
        const bool apart = placement.offsets[a] + lives[a].row_bytes <= placement.offsets[b] ||
                           placement.offsets[b] + lives[b].row_bytes <= placement.offsets[a];
        EXPECT_TRUE(!together || apart) << "round " << round << ": " << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace gen::graph
