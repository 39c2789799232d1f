// SPDX-License-Identifier: Apache-2.0
// Proves the order of the stages and what a draw depends on, against naive_sampling.h.
#include "sampling/chain.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "sampling/naive_sampling.h"

namespace gen::sampling {
namespace {

int32_t sample_token(const SamplingParams& params, std::vector<float> logits, uint64_t step = 0) {
  Chain chain(params);
  return chain.sample(logits, {}, step, 0).value().token;
}

TEST(Chain, EqualsThePlainReference) {
  // Odd values of top-p, so that no cumulated sum comes near them by construction.
  const std::array<double, 4> temperatures{0.0, 0.31, 1.0, 2.7};
  const std::array<int32_t, 4> ks{0, 1, 17, 100000};
  const std::array<double, 4> top_ps{1.0, 0.911, 0.503, 0.0001};
  const std::array<double, 3> min_ps{0.0, 0.0517, 0.93};
  const std::array<double, 2> penalties{1.0, 1.3};
  int cases = 0;
  for (const size_t size : {5U, 64U, 700U, 4099U}) {
    for (size_t mix = 0; mix < 96; ++mix) {
      SamplingParams params;
      params.temperature = temperatures[mix % 4];
      params.top_k = ks[(mix / 4) % 4];
      params.top_p = top_ps[(mix / 2) % 4];
      params.min_p = min_ps[mix % 3];
      params.repetition_penalty = penalties[(mix / 5) % 2];
      params.seed = mix;
      if (mix % 7 == 0) params.logit_bias = {{3, 2.5F}};
      if (mix % 7 == 1) params.logit_bias = {{1, -kInf}};
      const std::vector<float> row = random_row(size, size * 1000 + mix);
      const std::vector<int32_t> generated{0, 2, 2, 4};
      const std::vector<double> p = naive_distribution(row, params, generated);
      Chain chain(params);
      for (uint64_t step = 0; step < 8; ++step) {
        std::vector<float> logits = row;
        const auto choice = chain.sample(logits, generated, step, 0);
        ASSERT_TRUE(choice.ok());
        const int32_t expected = naive_draw(p, uniform_double(params.seed, 0, step));
        ASSERT_EQ(choice.value().token, expected) << "size " << size << " mix " << mix;
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 4 * 96 * 8);
}

TEST(Chain, GreedyTakesTheLowestOfEqualIds) {
  SamplingParams params;
  params.temperature = 0.0;
  EXPECT_EQ(sample_token(params, {1, 4, -2, 4, 4}), 1);
  EXPECT_EQ(sample_token(params, {-kInf, -kInf, -7}), 2);
  params.temperature = -3.0;
  EXPECT_EQ(sample_token(params, {1, 4, 9}), 2);
}

TEST(Chain, PenaltyActsBeforeGreedy) {
  SamplingParams params;
  params.temperature = 0.0;
  params.repetition_penalty = 2.0;
  Chain chain(params);
  std::vector<float> logits{4, 3, 1};
  const std::vector<int32_t> generated{0};
  EXPECT_EQ(chain.sample(logits, generated, 1, 0).value().token, 1);
}

TEST(Chain, DependsOnSeedAndStepOnly) {
  SamplingParams params;
  params.seed = 42;
  const std::vector<float> row = random_row(1000, 1);
  Chain used(params);
  std::vector<int32_t> forward;
  for (uint64_t step = 0; step < 50; ++step) {
    std::vector<float> logits = row;
    forward.push_back(used.sample(logits, {}, step, 0).value().token);
  }
  for (uint64_t step = 50; step-- > 0;) {
    EXPECT_EQ(sample_token(params, row, step), forward[step]);
  }
  params.seed = 43;
  std::vector<int32_t> other;
  for (uint64_t step = 0; step < 50; ++step) other.push_back(sample_token(params, row, step));
  EXPECT_NE(other, forward);
}

TEST(Chain, LogprobsAreOfTheRawRow) {
  SamplingParams params;
  params.temperature = 0.0;
  params.logprobs = 2;
  params.repetition_penalty = 5.0;
  ASSERT_TRUE(params.set_logit_bias(2, 10.0F).ok());
  Chain chain(params);
  std::vector<float> logits{1, 2, 3};
  const std::vector<int32_t> generated{2};
  const auto choice = chain.sample(logits, generated, 0, 0);
  ASSERT_TRUE(choice.ok());
  const double sum = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
  EXPECT_EQ(choice.value().token, 2);  // 3 + 10 divided by 5 is 2.6, still the best
  EXPECT_FLOAT_EQ(choice.value().logprob, static_cast<float>(3.0 - sum));
  ASSERT_EQ(choice.value().top.size(), 2U);
  EXPECT_EQ(choice.value().top[0].token, 2);
  EXPECT_EQ(choice.value().top[1].token, 1);
  EXPECT_FLOAT_EQ(choice.value().top[1].logprob, static_cast<float>(2.0 - sum));
}

TEST(Chain, LogprobsAreLeftOutUnlessAskedFor) {
  const double sum = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
  for (const int32_t count : {-1, 0, 1}) {
    SamplingParams params;
    params.temperature = 0.0;
    params.logprobs = count;
    Chain chain(params);
    std::vector<float> logits{1, 2, 3};
    const auto choice = chain.sample(logits, {}, 0, 0);
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice.value().token, 2);
    EXPECT_FLOAT_EQ(choice.value().logprob, count < 0 ? 0.0F : static_cast<float>(3.0 - sum));
    EXPECT_EQ(choice.value().top.size(), count == 1 ? 1U : 0U);
  }
}

TEST(Chain, TheMaskComesAfterTheBiasAndBeforeThePenalties) {
  SamplingParams params;
  params.temperature = 0.0;
  params.logprobs = 1;
  ASSERT_TRUE(params.set_logit_bias(0, 50.0F).ok());
  params.presence_penalty = -20.0;  // would lift token 1 above all
  const std::vector<uint32_t> bits{0xCU};
  const TokenMask mask{bits};
  const std::vector<int32_t> said{1};
  Chain chain(params);
  std::vector<float> logits{5, 4, 3, 2};
  const auto choice = chain.sample(logits, said, 0, 0, &mask);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice.value().token, 2);
  EXPECT_EQ(choice.value().top[0].token, 0);  // log-probabilities know of none of these
  const double sum = 3.0 + std::log(std::exp(2.0) + std::exp(1.0) + 1.0 + std::exp(-1.0));
  EXPECT_FLOAT_EQ(choice.value().logprob, static_cast<float>(3.0 - sum));
}

TEST(Chain, AMaskThatLeavesNothingIsAnError) {
  SamplingParams params;
  Chain chain(params);
  std::vector<float> logits{5, -kInf};
  const std::vector<uint32_t> bits{2U};
  TokenMask mask{bits};
  const auto choice = chain.sample(logits, {}, 0, 3, &mask);
  EXPECT_EQ(choice.status().code(), Code::kGrammar);
  EXPECT_STREQ(choice.status().message(),
               "row 3: mask, bias and penalties leave no token possible");
  mask.bits = {};
  EXPECT_EQ(chain.sample(logits, {}, 0, 3, &mask).status().code(), Code::kModel);  // gone before
}

TEST(Chain, UnusableRowsAreErrors) {
  SamplingParams params;
  Chain chain(params);
  const auto message = [&](std::vector<float> logits) {
    const auto choice = chain.sample(logits, {}, 0, 7);
    EXPECT_EQ(choice.status().code(), Code::kModel);
    return std::string(choice.status().message());
  };
  EXPECT_EQ(message({1, 2, std::nanf("")}), "row 7, token 2: logit is nan");
  EXPECT_EQ(message({1, kInf, 2}), "row 7, token 1: logit is +inf");
  EXPECT_EQ(message({-kInf, -kInf}), "row 7: all 2 logits are -inf");
  ASSERT_TRUE(params.set_logit_bias(0, -kInf).ok());
  EXPECT_EQ(message({5, -kInf}), "row 7: bias and penalties leave no token possible");
}

// Their other numbers, too, do nothing as long as a stage is off: to the last bit of the row.
TEST(Chain, StagesThatAreOffChangeNothing) {
  SamplingParams plain;
  plain.repetition_penalty = 1.2;
  plain.logprobs = 3;
  SamplingParams off = plain;
  off.top_n_sigma = -2.0;
  off.xtc_threshold = 0.0;
  off.mirostat_eta = 1.0;
  off.dry_base = 90.0;
  off.dry_allowed_length = 1;
  off.dry_window = 3;
  const std::vector<int32_t> said{4, 4, 4, 4};
  for (const double temperature : {0.0, 1.3}) {
    plain.temperature = off.temperature = temperature;
    for (uint64_t step = 0; step < 40; ++step) {
      std::vector<float> one = random_row(900, step);
      std::vector<float> two = one;
      Chain first(plain);
      Chain second(off);
      const auto a = first.sample(one, said, step, 0);
      const auto b = second.sample(two, said, step, 0);
      ASSERT_EQ(a.value().token, b.value().token);
      ASSERT_EQ(a.value().logprob, b.value().logprob);
      ASSERT_EQ(one, two);
    }
  }
}

TEST(Chain, FieldsSetByHandToNonsenseAreHarmless) {
  SamplingParams params;
  params.temperature = std::nan("");
  EXPECT_EQ(sample_token(params, {1, 4, 2}), 1);
  params = SamplingParams();
  params.top_k = -5;
  params.typical_p = std::nan("");
  params.top_p = std::nan("");
  params.frequency_penalty = std::nan("");
  params.presence_penalty = 1e300;
  params.min_p = 7.0;
  params.repetition_penalty = std::numeric_limits<double>::infinity();
  params.logprobs = -1;
  EXPECT_EQ(sample_token(params, {1, 4, 2}), 1);
  params = SamplingParams();
  for (const double nonsense : {std::nan(""), std::numeric_limits<double>::infinity(), -1e300}) {
    params.top_n_sigma = nonsense;
    params.xtc_probability = nonsense;
    params.xtc_threshold = nonsense;
    params.mirostat_tau = nonsense;
    params.mirostat_eta = nonsense;
    EXPECT_EQ(sample_token(params, {-kInf, 4, -kInf}), 1);
    EXPECT_EQ(sample_token(params, {4}), 0);
  }
}

}  // namespace
}  // namespace gen::sampling
