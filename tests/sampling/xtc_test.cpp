// SPDX-License-Identifier: Apache-2.0
// Proves what XTC takes out, how often, and that its random numbers are its own.
#include "sampling/xtc.h"

#include <gtest/gtest.h>

#include "sampling/chain.h"
#include "sampling/naive_sampling.h"

namespace gen::sampling {
namespace {

std::vector<int32_t> kept(const std::vector<double>& weights, double threshold) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < weights.size(); ++i) {
    candidates.push_back({static_cast<int32_t>(i), 0.0F, weights[i]});
  }
  apply_xtc(threshold, &candidates);
  std::vector<int32_t> ids;
  for (const Candidate& one : candidates) ids.push_back(one.token);
  return ids;
}

using Ids = std::vector<int32_t>;

TEST(Xtc, OnlyTheLeastOfTheTopStays) {
  // Shares 1/8, 1/2, 1/8, 1/4.
  const std::vector<double> weights{0.25, 1.0, 0.25, 0.5};
  EXPECT_EQ(kept(weights, 0.2), (Ids{0, 2, 3}));
  EXPECT_EQ(kept(weights, 0.25), (Ids{0, 2, 3}));
  EXPECT_EQ(kept(weights, 0.2500001), (Ids{0, 1, 2, 3}));  // one is no choice
  EXPECT_EQ(kept(weights, 0.125), (Ids{2}));               // the tie: the highest id
  EXPECT_EQ(kept(weights, 0.0), (Ids{2}));
  EXPECT_EQ(kept(weights, 0.51), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept({1.0, 1.0}, 0.5), (Ids{1}));
  EXPECT_EQ(kept({1.0, 1.0}, 0.5000001), (Ids{0, 1}));
}

TEST(Xtc, SomethingIsAlwaysLeftToDraw) {
  EXPECT_EQ(kept({1.0}, 0.0), (Ids{0}));
  EXPECT_EQ(kept({0.0, 1.0, 0.0}, 0.0), (Ids{0, 1, 2}));
  EXPECT_EQ(kept({0.0, 1.0, 0.5, 0.0}, 0.0), (Ids{0, 2, 3}));
  EXPECT_EQ(kept({1.0}, 1.0), (Ids{0}));
  EXPECT_EQ(kept({}, 0.0), Ids());
}

// Of two tokens the better one comes only where XTC does not act, and a second stream of numbers
// says where that is.
TEST(Xtc, ActsByItsOwnNumbersAndLeavesTheDrawsTheirs) {
  const std::vector<float> row{2.0F, 1.0F};
  SamplingParams plain;
  plain.seed = 77;
  SamplingParams params = plain;
  params.xtc_probability = 0.3;
  params.xtc_threshold = 0.2;
  int acted = 0;
  for (uint64_t step = 0; step < 20000; ++step) {
    std::vector<float> logits = row;
    Chain chain(params);
    const int32_t token = chain.sample(logits, {}, step, 0).value().token;
    logits = row;
    const int32_t other = Chain(plain).sample(logits, {}, step, 0).value().token;
    const bool acts = uniform_double(77, 1, step) < 0.3;
    acted += acts ? 1 : 0;
    ASSERT_EQ(token, acts ? 1 : other) << step;
  }
  EXPECT_NEAR(acted, 6000, 260);  // four deviations of a binomial distribution
}

TEST(Xtc, NeverAndAlways) {
  const std::vector<float> row = random_row(300, 4, 3.0);
  SamplingParams plain;
  for (uint64_t step = 0; step < 300; ++step) {
    std::vector<float> logits = row;
    const int32_t want = Chain(plain).sample(logits, {}, step, 0).value().token;
    for (const double probability : {0.0, -1.0, std::nan("")}) {
      SamplingParams off = plain;
      off.xtc_probability = probability;
      off.xtc_threshold = 0.0;
      logits = row;
      EXPECT_EQ(Chain(off).sample(logits, {}, step, 0).value().token, want);
    }
    SamplingParams always = plain;
    always.xtc_probability = 1.0;
    always.xtc_threshold = 0.0;
    logits = row;
    const auto least = std::min_element(row.begin(), row.end(), [](float a, float b) {
      return a != -kInf && (b == -kInf || a < b);
    });
    EXPECT_EQ(Chain(always).sample(logits, {}, step, 0).value().token, least - row.begin());
  }
}

}  // namespace
}  // namespace gen::sampling
