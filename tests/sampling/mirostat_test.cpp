// SPDX-License-Identifier: Apache-2.0
// Proves mirostat's bar against the paper's formulas in doubles, over whole texts, that the
// surprise of what is drawn comes to what was asked for, and what is left where nearly nothing is.
#include "sampling/mirostat.h"

#include <gtest/gtest.h>

#include "sampling/chain.h"
#include "sampling/naive_sampling.h"

namespace gen::sampling {
namespace {

SamplingParams mirostat(double tau, double eta) {
  SamplingParams params;
  params.mirostat_tau = tau;
  params.mirostat_eta = eta;
  return params;
}

// The text that the formulas say, a row for each step.
TEST(Mirostat, WholeTextsEqualTheReference) {
  int64_t cut = 0;
  for (uint64_t round = 0; round < 60; ++round) {
    SamplingParams params =
        mirostat(0.5 + static_cast<double>(round % 7), round % 2 == 0 ? 0.1 : 0.83);
    params.seed = round;
    params.temperature = round % 3 == 0 ? 1.6 : 1.0;
    if (round % 4 == 0) params.top_p = 0.953;
    if (round % 5 == 0) params.presence_penalty = 0.71;
    Chain chain(params);
    double bar = 2 * params.mirostat_tau;
    std::vector<int32_t> said;
    for (uint64_t step = 0; step < 60; ++step) {
      const std::vector<float> row = random_row(400, 1000 * round + step, 9.0);
      const NaiveStep at{.bar = std::max(bar, 0.0)};
      const std::vector<double> p = naive_distribution(row, params, said, nullptr, at);
      const int32_t want = naive_draw(p, uniform_double(params.seed, 0, step));
      std::vector<float> logits = row;
      const auto choice = chain.sample(logits, said, step, 0);
      ASSERT_TRUE(choice.ok());
      ASSERT_EQ(choice.value().token, want) << "round " << round << " step " << step;
      cut += std::count(p.begin(), p.end(), 0.0);
      bar -= params.mirostat_eta * (-std::log2(p[static_cast<size_t>(want)]) - params.mirostat_tau);
      said.push_back(want);
    }
  }
  EXPECT_GT(cut, 100000);
}

// Among what was left at each step, as the paper has it.
TEST(Mirostat, TheSurpriseOfATextIsWhatWasAskedFor) {
  const std::vector<float> row = random_row(500, 3, 6.0);
  for (const double tau : {1.0, 3.0, 5.0}) {
    const SamplingParams params = mirostat(tau, 0.1);
    Chain chain(params);
    Mirostat follows(params);
    double sum = 0;
    constexpr int kSteps = 1500;
    for (uint64_t step = 0; step < kSteps; ++step) {
      const NaiveStep at{.bar = std::max(follows.bar(), 0.0)};
      const std::vector<double> p = naive_distribution(row, params, {}, nullptr, at);
      std::vector<float> logits = row;
      const int32_t token = chain.sample(logits, {}, step, 0).value().token;
      sum += -std::log2(p[static_cast<size_t>(token)]);
      std::vector<Candidate> left;
      for (size_t i = 0; i < p.size(); ++i) {
        if (p[i] > 0) left.push_back({static_cast<int32_t>(i), 0.0F, p[i]});
      }
      follows.drawn(token, left);
    }
    EXPECT_NEAR(sum / kSteps, tau, 0.05);
  }
}

std::vector<Candidate> with_weights(const std::vector<double>& weights) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < weights.size(); ++i) {
    candidates.push_back({static_cast<int32_t>(i), 0.0F, weights[i]});
  }
  return candidates;
}

std::vector<int32_t> kept(const Mirostat& stage, const std::vector<double>& weights) {
  std::vector<Candidate> candidates = with_weights(weights);
  stage.cut(&candidates);
  std::vector<int32_t> ids;
  for (const Candidate& one : candidates) ids.push_back(one.token);
  return ids;
}

using Ids = std::vector<int32_t>;

TEST(Mirostat, CutsAboveTheBarAndNeverTheBest) {
  // Surprises of 3, 1, 3 and 2 bits.
  const std::vector<double> weights{0.25, 1.0, 0.25, 0.5};
  EXPECT_EQ(kept(Mirostat(mirostat(1.501, 0.1)), weights), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept(Mirostat(mirostat(1.499, 0.1)), weights), (Ids{1, 3}));
  EXPECT_EQ(kept(Mirostat(mirostat(0.999, 0.1)), weights), (Ids{1}));
  EXPECT_EQ(kept(Mirostat(mirostat(0.001, 0.1)), weights), (Ids{1}));
  EXPECT_EQ(kept(Mirostat(mirostat(100.0, 0.1)), {0.0, 1.0, 1e-290, 0.0}), (Ids{1}));
  EXPECT_EQ(kept(Mirostat(mirostat(0.1, 0.1)), {1.0, 1.0, 1.0}), (Ids{0}));
  EXPECT_EQ(kept(Mirostat(mirostat(0.1, 0.1)), {1.0}), (Ids{0}));
}

TEST(Mirostat, TheBarMovesByWhatWasDrawnAndMayFallBelowNothing) {
  Mirostat stage(mirostat(2.0, 0.5));
  EXPECT_EQ(stage.bar(), 4.0);
  const std::vector<Candidate> candidates = with_weights({0.25, 1.0, 0.25, 0.5});
  stage.drawn(1, candidates);  // 1 bit, 1 below
  EXPECT_NEAR(stage.bar(), 4.5, 1e-14);
  stage.drawn(0, candidates);
  EXPECT_NEAR(stage.bar(), 4.0, 1e-14);
  const std::vector<Candidate> rare = with_weights({1.0, 0x1p-60});
  stage.drawn(1, rare);  // 60 bits
  EXPECT_NEAR(stage.bar(), 4.0 - 0.5 * 58.0, 1e-12);
  EXPECT_EQ(kept(stage, {1.0, 1.0}), (Ids{0}));
  for (int i = 0; i < 26; ++i) stage.drawn(0, with_weights({1.0}));  // each one gives 1 bit back
  EXPECT_NEAR(stage.bar(), 1.0, 1e-12);
  // The rarest that there can be.
  Mirostat other(mirostat(2.0, 1.0));
  other.drawn(1, with_weights({1.0, 3e-308}));
  EXPECT_NEAR(other.bar(), 4.0 + 2.0 + std::log2(3e-308), 1e-9);
}

TEST(Mirostat, IsOffUnlessItsNumbersAreNumbers) {
  EXPECT_FALSE(Mirostat(SamplingParams()).is_on());
  EXPECT_TRUE(Mirostat(mirostat(5.0, 0.0)).is_on());
  const double nan = std::nan("");
  for (const SamplingParams& params :
       {mirostat(-1.0, 0.1), mirostat(nan, 0.1), mirostat(1e9, 0.1), mirostat(5.0, nan),
        mirostat(5.0, -0.1), mirostat(5.0, 2.0)}) {
    EXPECT_FALSE(Mirostat(params).is_on());
  }
}

TEST(Mirostat, IsNotAskedByGreedy) {
  SamplingParams params = mirostat(0.1, 1.0);
  params.temperature = 0.0;
  Chain chain(params);
  EXPECT_EQ(chain.short_row(false, false).k, 1);
  std::vector<float> logits{1, 4, 2};
  EXPECT_EQ(chain.sample(logits, {}, 0, 0).value().token, 1);
}

}  // namespace
}  // namespace gen::sampling
