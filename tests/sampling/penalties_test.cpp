// SPDX-License-Identifier: Apache-2.0
// Proves the two stages that change single logits, by the examples of the specification and by
// hand.
#include "sampling/penalties.h"

#include <gtest/gtest.h>

#include <limits>

namespace gen::sampling {
namespace {

std::vector<float> penalised(std::vector<float> logits, std::vector<int32_t> generated,
                             double penalty, int32_t window = 0) {
  std::vector<uint32_t> seen;
  uint32_t epoch = 0;
  std::vector<LogitEdit> edits;
  apply_repetition_penalty(generated, penalty, window, logits, &seen, &epoch, &edits);
  return logits;
}

TEST(RepetitionPenalty, DividesPositiveMultipliesTheRest) {
  EXPECT_EQ(penalised({4, 2, 6}, {0, 2}, 2.0), (std::vector<float>{2, 2, 3}));
  EXPECT_EQ(penalised({-4}, {0}, 2.0), (std::vector<float>{-8}));
  EXPECT_EQ(penalised({0, 5}, {0}, 2.0), (std::vector<float>{0, 5}));
}

TEST(RepetitionPenalty, OncePerDistinctToken) {
  EXPECT_EQ(penalised({8, 8}, {0, 0, 0, 1}, 2.0), (std::vector<float>{4, 4}));
}

TEST(RepetitionPenalty, IgnoresTokensOutsideTheRow) {
  EXPECT_EQ(penalised({8, 8}, {-1, 2, 1000000}, 2.0), (std::vector<float>{8, 8}));
}

TEST(RepetitionPenalty, WindowCountsTheLastTokens) {
  EXPECT_EQ(penalised({8, 8, 8}, {0, 1, 2}, 2.0, 2), (std::vector<float>{8, 4, 4}));
  EXPECT_EQ(penalised({8, 8, 8}, {0, 1, 2}, 2.0, 9), (std::vector<float>{4, 4, 4}));
}

TEST(RepetitionPenalty, ExtremesStayLegal) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(penalised({1, -1, -kInf}, {0, 1, 2}, 1e-300),
            (std::vector<float>{std::numeric_limits<float>::max(), -0.0F, -kInf}));
  EXPECT_EQ(penalised({1, -1}, {0, 1}, 1e300), (std::vector<float>{0.0F, -kInf}));
}

TEST(RepetitionPenalty, MarksSurviveTheEpochsWrap) {
  std::vector<float> logits{8, 8};
  std::vector<uint32_t> seen{1, 0};  // a mark as the first epoch would have left it
  uint32_t epoch = std::numeric_limits<uint32_t>::max();
  std::vector<LogitEdit> edits;
  const std::vector<int32_t> generated{0};
  apply_repetition_penalty(generated, 2.0, 0, logits, &seen, &epoch, &edits);
  EXPECT_EQ(logits[0], 4.0F);
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
