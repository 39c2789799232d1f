// SPDX-License-Identifier: Apache-2.0
// Proves temperature, top-k, top-p, min-p and the draw one by one, by the specification's examples
// and by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sampling/draw.h"
#include "sampling/selection.h"
#include "sampling/temperature.h"
#include "sampling/top_p.h"

namespace gen::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<int32_t> tokens(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& one : candidates) ids.push_back(one.token);
  return ids;
}

std::vector<Candidate> weighed(const std::vector<float>& logits, double temperature,
                               float bar = -kInf) {
  std::vector<Candidate> candidates;
  weigh(logits, row_max(logits), temperature, bar, &candidates);
  return candidates;
}

TEST(Temperature, DividesLogits) {
  // [4, 6, 8] at 2 is [2, 3, 4], and weights are relative to the best.
  const auto candidates = weighed({4, 6, 8}, 2.0);
  ASSERT_EQ(candidates.size(), 3U);
  EXPECT_NEAR(candidates[0].weight, std::exp(2.0 - 4.0), 1e-15);
  EXPECT_NEAR(candidates[1].weight, std::exp(3.0 - 4.0), 1e-15);
  EXPECT_EQ(candidates[2].weight, 1.0);
}

TEST(Temperature, SmallestAndLargestAreSafe) {
  const auto cold = weighed({1, 1.5F, -kInf, -3e38F}, 5e-324);
  EXPECT_EQ(tokens(cold), (std::vector<int32_t>{0, 1, 3}));
  EXPECT_EQ(cold[0].weight, 0.0);
  EXPECT_EQ(cold[1].weight, 1.0);
  const auto hot = weighed({1, 100, -kInf}, std::numeric_limits<double>::max());
  EXPECT_EQ(hot.size(), 2U);
  EXPECT_EQ(hot[0].weight, 1.0);
}

TEST(TopK, KeepsTheBestAndAllTiesAtTheBar) {
  std::vector<float> scratch;
  const std::vector<float> logits{1, 5, 3, 7, 2};
  EXPECT_EQ(tokens(weighed(logits, 1.0, kth_largest(logits, 2, &scratch))),
            (std::vector<int32_t>{1, 3}));
  const std::vector<float> ties{5, 7, 5, 1, 5};
  EXPECT_EQ(tokens(weighed(ties, 1.0, kth_largest(ties, 2, &scratch))),
            (std::vector<int32_t>{0, 1, 2, 4}));
}

std::vector<Candidate> with_weights(const std::vector<double>& weights) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < weights.size(); ++i) {
    candidates.push_back({static_cast<int32_t>(i), 0.0F, weights[i]});
  }
  return candidates;
}

TEST(TopP, ShortestPrefixThatReachesTheMass) {
  // Shares 1/8, 1/2, 1/8, 1/4: sums of these are exact in binary.
  const std::vector<double> weights{0.25, 1.0, 0.25, 0.5};
  const auto kept = [&](double p) {
    auto candidates = with_weights(weights);
    apply_top_p(p, &candidates);
    return tokens(candidates);
  };
  EXPECT_EQ(kept(1e-9), (std::vector<int32_t>{1}));
  EXPECT_EQ(kept(0.5), (std::vector<int32_t>{1}));
  EXPECT_EQ(kept(0.5000001), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(kept(0.75), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(kept(0.875), (std::vector<int32_t>{0, 1, 3}));  // the tie goes to the lower id
  EXPECT_EQ(kept(0.999), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(TopP, LongFlatRowsNeedMoreThanTheFirstSort) {
  std::vector<double> weights(10000, 1.0);
  auto candidates = with_weights(weights);
  apply_top_p(0.5, &candidates);
  ASSERT_EQ(candidates.size(), 5000U);
  for (int32_t i = 0; i < 5000; ++i) ASSERT_EQ(candidates[static_cast<size_t>(i)].token, i);
}

TEST(MinP, RelativeToTheBest) {
  auto candidates = with_weights({0.25, 1.0, 0.2499, 0.5});
  apply_min_p(0.25, &candidates);
  EXPECT_EQ(tokens(candidates), (std::vector<int32_t>{0, 1, 3}));
  apply_min_p(1.0, &candidates);
  EXPECT_EQ(tokens(candidates), (std::vector<int32_t>{1}));
}

TEST(Draw, FirstWhoseCumulatedShareExceeds) {
  const auto candidates = with_weights({0.0, 0.25, 0.25, 0.0, 0.5, 0.0});
  EXPECT_EQ(draw(candidates, 0.0), 1);
  EXPECT_EQ(draw(candidates, 0.2499999), 1);
  EXPECT_EQ(draw(candidates, 0.25), 2);
  EXPECT_EQ(draw(candidates, 0.4999999), 2);
  EXPECT_EQ(draw(candidates, 0.5), 4);
  EXPECT_EQ(draw(candidates, std::nextafter(1.0, 0.0)), 4);
  EXPECT_EQ(draw(candidates, 1.0), 4);  // what rounding may leave over
}

}  // namespace
}  // namespace gen::sampling
