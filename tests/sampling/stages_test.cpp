// SPDX-License-Identifier: Apache-2.0
// Proves temperature, top-k, top-p, min-p and the draw one by one, by the specification's examples
// and by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"
#include "sampling/draw.h"
#include "sampling/row_peaks.h"
#include "sampling/selection.h"
#include "sampling/temperature.h"
#include "sampling/token_mask.h"
#include "sampling/top_p.h"
#include "sampling/typical_p.h"

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
  RowPeaks peaks;
  EXPECT_EQ(peaks.read(logits), logits.size());
  std::vector<Candidate> candidates;
  peaks.collect(logits, bar, &candidates);
  weigh(peaks.max(), temperature, candidates);
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
    std::vector<Candidate> border;
    apply_top_p(p, &candidates, &border);
    return tokens(candidates);
  };
  EXPECT_EQ(kept(1e-9), (std::vector<int32_t>{1}));
  EXPECT_EQ(kept(0.5), (std::vector<int32_t>{1}));
  EXPECT_EQ(kept(0.5000001), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(kept(0.75), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(kept(0.875), (std::vector<int32_t>{0, 1, 3}));  // the tie goes to the lower id
  EXPECT_EQ(kept(0.999), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(TopP, LongFlatRowsKeepTheLowestIds) {
  std::vector<double> weights(10000, 1.0);
  auto candidates = with_weights(weights);
  std::vector<Candidate> border;
  apply_top_p(0.5, &candidates, &border);
  ASSERT_EQ(candidates.size(), 5000U);
  for (int32_t i = 0; i < 5000; ++i) ASSERT_EQ(candidates[static_cast<size_t>(i)].token, i);
}

// Weights of all sizes, in runs of equal ones, against sorting everything.
TEST(TopP, EqualsSortingEverything) {
  for (uint64_t round = 0; round < 300; ++round) {
    const auto size = static_cast<size_t>(1 + uniform_double(round, 0, 0) * 900);
    std::vector<double> weights(size);
    for (size_t i = 0; i < size; ++i) {
      const double u = uniform_double(round, 1, i / (1 + round % 4));
      weights[i] = std::exp(-(round % 3 == 0 ? 700.0 : 9.0) * u);
    }
    weights[size / 2] = 1.0;
    const double p = 0.001 + 0.998 * uniform_double(round, 0, 1);
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return weights[a] > weights[b]; });
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int32_t> expected;
    double mass = 0;
    for (size_t i = 0; i < size && mass < p * total; ++i) {
      expected.push_back(static_cast<int32_t>(order[i]));
      mass += weights[order[i]];
    }
    std::sort(expected.begin(), expected.end());
    auto candidates = with_weights(weights);
    std::vector<Candidate> border;
    apply_top_p(p, &candidates, &border);
    ASSERT_EQ(tokens(candidates), expected) << "round " << round;
  }
}

std::vector<int32_t> typical(const std::vector<float>& logits, double p, double temperature = 1.0) {
  auto candidates = weighed(logits, temperature);
  std::vector<Candidate> border;
  apply_typical_p(p, row_max(logits), temperature, &candidates, &border);
  return tokens(candidates);
}

// Probabilities 1/2, 1/4, 1/8, 1/8 have an entropy of 1.75 bits, so the surprises 1, 2, 3, 3 are
// 0.75, 0.25, 1.25, 1.25 away: the second comes first, then the first.
TEST(TypicalP, NearestToTheEntropyFirst) {
  const auto bits = [](double n) { return static_cast<float>(-n * std::log(2.0)); };
  const std::vector<float> logits{bits(1), bits(2), bits(3), bits(3)};
  EXPECT_EQ(typical(logits, 0.2), (std::vector<int32_t>{1}));
  EXPECT_EQ(typical(logits, 0.26), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(typical(logits, 0.74), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(typical(logits, 0.76), (std::vector<int32_t>{0, 1, 2}));  // the tie: the lower id
  EXPECT_EQ(typical(logits, 0.9), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(TypicalP, EqualOnesGoByIdAndImpossibleOnesNeverStay) {
  EXPECT_EQ(typical(std::vector<float>(8, 3.0F), 0.5), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(typical({-kInf, 2, -kInf, 2}, 0.9), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(typical({1, 2, 3}, 0.9, 5e-324), (std::vector<int32_t>{2}));
  EXPECT_EQ(typical({1}, 1e-300), (std::vector<int32_t>{0}));
  EXPECT_EQ(typical({-3e38F, 3e38F, 3e38F}, 0.7, 1e6), (std::vector<int32_t>{1, 2}));
}

TEST(Mask, ForbidsWhereABitIsMissingAndBeyondItsEnd) {
  const std::vector<uint32_t> bits{0x80000005U, 0xFFFFFFFFU, 0U};
  std::vector<float> logits(101, 1.0F);
  apply_mask({bits}, logits);
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool allowed = i == 0 || i == 2 || (i >= 31 && i < 64);
    EXPECT_EQ(logits[i], allowed ? 1.0F : -kInf) << i;
  }
  logits.assign(3, 1.0F);
  apply_mask({std::vector<uint32_t>{3U}}, logits);
  EXPECT_EQ(logits, (std::vector<float>{1, 1, -kInf}));
  apply_mask({}, logits);
  EXPECT_EQ(logits, std::vector<float>(3, -kInf));
}

TEST(MinP, TheBarNeverCutsWhatTheStageKeeps) {
  for (uint64_t i = 0; i < 20000; ++i) {
    const double min_p = std::exp(-20.0 * uniform_double(i, 0, 0));
    const double temperature = std::exp(20.0 * uniform_double(i, 0, 1) - 10.0);
    const auto max = static_cast<float>(2000.0 * uniform_double(i, 0, 2) - 1000.0);
    const float bar = min_p_bar(min_p, max, temperature);
    ASSERT_LE(bar, max);
    // The smallest logit that the stage keeps lies at or above the bar, and the bar is of use.
    const double least = static_cast<double>(max) + temperature * std::log(min_p);
    ASSERT_LE(static_cast<double>(bar), least);
    const double depth = temperature * -std::log(min_p);
    ASSERT_GE(static_cast<double>(bar), least - 1e-5 * (1.0 + temperature + std::abs(max) + depth));
    const auto below = weighed({std::nextafter(bar, -kInf), max}, temperature);
    ASSERT_LT(below[0].weight, min_p) << i;
  }
  EXPECT_EQ(min_p_bar(0.0, 1.0F, 1.0), -kInf);
  EXPECT_EQ(min_p_bar(0.5, 1.0F, 1e300), -kInf);
}

TEST(MinP, TheBestIsTheBestThatIsLeft) {
  auto candidates = with_weights({0.25, 0.5, 0.1});
  apply_min_p(0.5, &candidates);
  EXPECT_EQ(tokens(candidates), (std::vector<int32_t>{0, 1}));
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
