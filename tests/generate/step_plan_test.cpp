// SPDX-License-Identifier: Apache-2.0
// Proves the rules by which a step is chosen: oldest always, then decoding, then chunks that fit.
#include "generate/step_plan.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gen::generate {
namespace {

// Indices of the chosen requests, whose row counts are given oldest first.
std::vector<size_t> chosen(const std::vector<size_t>& rows, StepLimits limits) {
  static const std::vector<int32_t> kTokens(1024, 0);
  std::vector<StepRequest> requests(rows.size());
  std::vector<StepRequest*> waiting;
  for (size_t i = 0; i < rows.size(); ++i) {
    requests[i].tokens = std::span(kTokens).first(rows[i]);
    waiting.push_back(&requests[i]);
  }
  StepPlan plan;
  plan.rows = 77;  // leftovers of a former step
  plan_step(waiting, limits, &plan);
  std::vector<size_t> indices;
  int32_t sum = 0;
  for (const StepRequest* request : plan.requests) {
    indices.push_back(static_cast<size_t>(request - requests.data()));
    sum += request->rows();
  }
  EXPECT_EQ(plan.rows, sum);
  return indices;
}

using Indices = std::vector<size_t>;

TEST(StepPlan, NothingWaiting) { EXPECT_EQ(chosen({}, {4, 100}), Indices{}); }

TEST(StepPlan, OneSequenceTakesTheOldest) {
  EXPECT_EQ(chosen({50, 1, 1}, {1, 100}), Indices{0});
  EXPECT_EQ(chosen({1, 50, 1}, {1, 100}), Indices{0});
}

TEST(StepPlan, DecodingBeforeChunks) {
  EXPECT_EQ(chosen({1, 50, 1, 30, 1}, {8, 100}), (Indices{0, 2, 4, 1, 3}));
}

TEST(StepPlan, TheOldestIsNeverPassedOver) {
  EXPECT_EQ(chosen({90, 1, 1, 1}, {2, 100}), (Indices{0, 1}));
  EXPECT_EQ(chosen({200, 1}, {8, 100}), (Indices{0}));  // even if it is too big: the model says so
}

TEST(StepPlan, RowsAreABudget) {
  EXPECT_EQ(chosen({1, 60, 60, 30}, {8, 100}), (Indices{0, 1, 3}));
  EXPECT_EQ(chosen({1, 1, 1}, {8, 2}), (Indices{0, 1}));
}

}  // namespace
}  // namespace gen::generate
