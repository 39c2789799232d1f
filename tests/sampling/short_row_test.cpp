// SPDX-License-Identifier: Apache-2.0
// Proves that the largest logits of a row give the token that the whole row gives, with every stage
// that looks at no others, also where many are equal; that a row is told to be too short where more
// logits survive top-k than it holds; and which settings need the whole row.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "sampling/chain.h"

namespace gen::sampling {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr size_t kVocab = 700;

struct Best {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  [[nodiscard]] ShortRow row() const { return {tokens, logits}; }
};

Best best_of(const std::vector<float>& row) {
  Best best;
  best.tokens.resize(row.size());
  std::iota(best.tokens.begin(), best.tokens.end(), 0);
  std::stable_sort(best.tokens.begin(), best.tokens.end(), [&](int32_t a, int32_t b) {
    return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
  });
  best.tokens.resize(kShortRow);
  for (const int32_t token : best.tokens) best.logits.push_back(row[static_cast<size_t>(token)]);
  return best;
}

/// `steps`: into how many values logits are rounded per unit; fewer make more of them equal.
std::vector<float> row_of(std::mt19937& random, float steps, double impossible) {
  std::normal_distribution<float> normal(0.0F, 2.0F);
  std::uniform_real_distribution<double> share;
  std::vector<float> row(kVocab);
  for (float& logit : row) {
    logit = share(random) < impossible ? kNothing : std::round(normal(random) * steps) / steps;
  }
  return row;
}

SamplingParams params_of(std::mt19937& random) {
  SamplingParams params;
  params.temperature = 0.3 + static_cast<double>(random() % 20) / 10.0;
  params.top_k = 1 + static_cast<int32_t>(random() % (kShortRow - 1));
  params.seed = random();
  if (random() % 2 == 0) params.top_p = 0.8;
  if (random() % 3 == 0) params.typical_p = 0.7;
  if (random() % 3 == 0) params.min_p = 0.05;
  if (random() % 3 == 0) params.gumbel = true;
  if (random() % 3 == 0) params.xtc_probability = 0.5;
  if (random() % 3 == 0) params.mirostat_tau = 2.0;
  return params;
}

TEST(ShortRow, GivesWhatTheRowGives) {
  std::mt19937 random(11);
  int short_ones = 0;
  int too_short = 0;
  for (int round = 0; round < 3000; ++round) {
    const float steps = std::array{1000.0F, 16.0F, 2.0F, 0.5F}[random() % 4];
    const double impossible = std::array{0.0, 0.1, 0.9, 0.995}[random() % 4];
    const SamplingParams params = params_of(random);
    Chain whole(params);
    Chain of_best(params);
    ASSERT_TRUE(of_best.short_row_will_do());
    // Several steps, as mirostat learns from one to the next.
    for (uint64_t step = 0; step < 3; ++step) {
      std::vector<float> row = row_of(random, steps, impossible);
      row[random() % kVocab] = 1.0F;
      const Best best = best_of(row);
      const float bar = best.logits[static_cast<size_t>(params.top_k) - 1];
      const auto survivors = std::count_if(
          row.begin(), row.end(), [bar](float logit) { return logit >= bar && logit > kNothing; });
      if (!of_best.decides(best.row())) {
        ++too_short;
        EXPECT_GE(survivors, kShortRow);
        break;
      }
      ++short_ones;
      ASSERT_LE(survivors, kShortRow);
      const auto got = of_best.sample_short(best.row(), kVocab, step, 5);
      const auto want = whole.sample(row, {}, step, 5);
      ASSERT_TRUE(got.ok() && want.ok());
      ASSERT_EQ(got.value().token, want.value().token) << round << " step " << step;
      ASSERT_EQ(of_best.candidates().size(), whole.candidates().size());
      for (size_t i = 0; i < whole.candidates().size(); ++i) {
        ASSERT_EQ(of_best.candidates()[i].token, whole.candidates()[i].token);
        ASSERT_EQ(of_best.candidates()[i].weight, whole.candidates()[i].weight);
      }
    }
  }
  EXPECT_GT(short_ones, 4000);
  EXPECT_GT(too_short, 200);
}

TEST(ShortRow, KeepsOrReplacesAProposal) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    SamplingParams params;
    params.top_k = 20;
    params.seed = random();
    Chain whole(params);
    Chain of_best(params);
    std::vector<float> row = row_of(random, 1000.0F, 0.0);
    const Best best = best_of(row);
    // Now and then one that top-k has taken out.
    std::vector<Candidate> guesses;
    for (int32_t i = 0; i < 4; ++i)
      guesses.push_back({best.tokens[static_cast<size_t>(7 * i)], 0, 1});
    std::sort(guesses.begin(), guesses.end(),
              [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
    Proposal proposal;
    proposal.token = guesses[random() % 4].token;
    proposal.from = guesses;
    Further further;
    further.proposal = &proposal;
    const auto got = of_best.sample_short(best.row(), kVocab, 3, 0, further);
    const auto want = whole.sample(row, {}, 3, 0, nullptr, further);
    ASSERT_TRUE(got.ok() && want.ok());
    ASSERT_EQ(got.value().token, want.value().token) << round;
  }
}

TEST(ShortRow, IsToldWhereNothingIsPossible) {
  SamplingParams params;
  params.top_k = 3;
  Chain chain(params);
  std::vector<float> row(kVocab, kNothing);
  const Best best = best_of(row);
  ASSERT_TRUE(chain.decides(best.row()));
  const auto got = chain.sample_short(best.row(), kVocab, 0, 9);
  const auto want = chain.sample(row, {}, 0, 9);
  EXPECT_EQ(got.status().code(), Code::kModel);
  EXPECT_STREQ(got.status().message(), want.status().message());
}

TEST(ShortRow, WillDoForDrawsByTopKAlone) {
  const auto will_do = [](void (*change)(SamplingParams&)) {
    SamplingParams params;
    params.top_k = 40;
    change(params);
    return Chain(params).short_row_will_do();
  };
  EXPECT_TRUE(will_do([](SamplingParams&) {}));
  EXPECT_TRUE(will_do([](SamplingParams& p) { p.top_k = kShortRow - 1; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { p.top_k = kShortRow; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { p.top_k = 0; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { p.temperature = 0.0; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { p.logprobs = 0; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { p.top_n_sigma = 1.0; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { p.repetition_penalty = 1.1; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { p.frequency_penalty = 0.1; }));
  EXPECT_FALSE(will_do([](SamplingParams& p) { (void)p.set_logit_bias(3, 1.0F); }));
}

}  // namespace
}  // namespace gen::sampling
