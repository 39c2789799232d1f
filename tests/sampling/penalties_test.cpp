// SPDX-License-Identifier: Apache-2.0
// Proves the stages that change single logits, by the examples of the specification and by hand.
#include "sampling/penalties.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace gen::sampling {
namespace {

std::vector<float> after(std::vector<float> logits, const std::vector<int32_t>& said,
                         const Penalties& penalties, int32_t window = 0) {
  TokenCounter counter;
  std::vector<LogitEdit> edits;
  apply_penalties(counter.count(said, window, logits.size()), penalties, logits, &edits);
  return logits;
}

std::vector<float> repeated(std::vector<float> logits, const std::vector<int32_t>& said,
                            double penalty, int32_t window = 0) {
  Penalties penalties;
  penalties.repetition = penalty;
  return after(std::move(logits), said, penalties, window);
}

TEST(RepetitionPenalty, DividesPositiveMultipliesTheRest) {
  EXPECT_EQ(repeated({4, 2, 6}, {0, 2}, 2.0), (std::vector<float>{2, 2, 3}));
  EXPECT_EQ(repeated({-4}, {0}, 2.0), (std::vector<float>{-8}));
  EXPECT_EQ(repeated({0, 5}, {0}, 2.0), (std::vector<float>{0, 5}));
}

TEST(RepetitionPenalty, OncePerDistinctToken) {
  EXPECT_EQ(repeated({8, 8}, {0, 0, 0, 1}, 2.0), (std::vector<float>{4, 4}));
}

TEST(RepetitionPenalty, IgnoresTokensOutsideTheRow) {
  EXPECT_EQ(repeated({8, 8}, {-1, 2, 1000000}, 2.0), (std::vector<float>{8, 8}));
}

TEST(RepetitionPenalty, WindowCountsTheLastTokens) {
  EXPECT_EQ(repeated({8, 8, 8}, {0, 1, 2}, 2.0, 2), (std::vector<float>{8, 4, 4}));
  EXPECT_EQ(repeated({8, 8, 8}, {0, 1, 2}, 2.0, 9), (std::vector<float>{4, 4, 4}));
}

TEST(RepetitionPenalty, ExtremesStayLegal) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(repeated({1, -1, -kInf}, {0, 1, 2}, 1e-300),
            (std::vector<float>{std::numeric_limits<float>::max(), -0.0F, -kInf}));
  EXPECT_EQ(repeated({1, -1}, {0, 1}, 1e300), (std::vector<float>{0.0F, -kInf}));
}

TEST(RepetitionPenalty, CompoundIsOncePerOccurrence) {
  Penalties penalties;
  penalties.repetition = 2.0;
  penalties.compound = true;
  EXPECT_EQ(after({8, -1, 8, 8}, {0, 1, 0, 1, 0, 3}, penalties), (std::vector<float>{1, -4, 8, 4}));
}

TEST(FlatPenalties, FrequencyCountsPresenceDoesNot) {
  Penalties penalties;
  penalties.frequency = 0.5;
  EXPECT_EQ(after({8, 8, 8}, {0, 2, 0, 0}, penalties), (std::vector<float>{6.5F, 8, 7.5F}));
  EXPECT_EQ(after({8, 8, 8}, {0, 2, 0, 0}, penalties, 2), (std::vector<float>{7, 8, 8}));
  penalties.presence = 2;
  EXPECT_EQ(after({8, 8, 8}, {0, 2, 0, 0}, penalties), (std::vector<float>{4.5F, 8, 5.5F}));
  penalties.frequency = -1;  // a reward
  penalties.presence = 0;
  EXPECT_EQ(after({8, 8}, {1, 1, 5}, penalties), (std::vector<float>{8, 10}));
}

TEST(FlatPenalties, ComeAfterTheRepetitionPenalty) {
  Penalties penalties;
  penalties.repetition = 2.0;
  penalties.presence = 3.0;
  EXPECT_EQ(after({4, -4}, {0, 1}, penalties), (std::vector<float>{-1, -11}));
}

TEST(FlatPenalties, NothingMakesTheImpossiblePossible) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Penalties penalties;
  penalties.repetition = 1e-300;
  penalties.compound = true;
  penalties.frequency = -100;
  penalties.presence = -100;
  EXPECT_EQ(after({-kInf, 1}, {0, 0, 1, 1}, penalties),
            (std::vector<float>{-kInf, std::numeric_limits<float>::max()}));
}

TEST(Penalties, ValuesOutOfRangeReadAsOff) {
  SamplingParams params;
  EXPECT_FALSE(Penalties::of(params).any());
  params.repetition_penalty = std::numeric_limits<double>::infinity();
  params.frequency_penalty = 101;
  params.presence_penalty = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Penalties::of(params).any());
  params.presence_penalty = -100;
  EXPECT_EQ(Penalties::of(params).presence, -100.0);
}

TEST(TokenCounter, CountsInTheOrderOfTheFirst) {
  TokenCounter counter;
  const std::vector<int32_t> said{3, 1, 3, -1, 9, 1, 3, 0};
  for (int round = 0; round < 3; ++round) {  // what an earlier call left does not show
    const auto counts = counter.count(said, 0, 4);
    ASSERT_EQ(counts.size(), 3U);
    EXPECT_EQ(counts[0].token, 3);
    EXPECT_EQ(counts[0].count, 3);
    EXPECT_EQ(counts[1].token, 1);
    EXPECT_EQ(counts[1].count, 2);
    EXPECT_EQ(counts[2].token, 0);
    EXPECT_EQ(counter.count(said, 1, 4).size(), 1U);
    EXPECT_TRUE(counter.count({}, 0, 4).empty());
    EXPECT_EQ(counter.count(said, 0, 100).size(), 4U);
  }
}

TEST(Bias, AddsAndNotesWhatWas) {
  std::vector<float> logits{1, 2, 3};
  std::vector<LogitEdit> edits;
  const std::vector<LogitBias> bias{
      {0, 2.5F}, {2, -std::numeric_limits<float>::infinity()}, {9, 1}};
  apply_bias(bias, logits, &edits);
  EXPECT_EQ(logits[0], 3.5F);
  EXPECT_EQ(logits[1], 2.0F);
  EXPECT_EQ(logits[2], -std::numeric_limits<float>::infinity());
  ASSERT_EQ(edits.size(), 2U);
  EXPECT_EQ(edits[1].token, 2);
  EXPECT_EQ(edits[1].before, 3.0F);
}

}  // namespace
}  // namespace gen::sampling
