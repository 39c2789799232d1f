// SPDX-License-Identifier: Apache-2.0
// Proves the rules by which a step is chosen: whoever is first always, then decoding, then prompts
// cut to the rows that are left; priorities, and that nobody is passed over for ever.
#include "generate/step/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/rng.h"

namespace gen::generate {
namespace {

using Slices = std::vector<std::pair<size_t, int32_t>>;  // index of the request, rows of it

struct Waiting {
  explicit Waiting(const std::vector<size_t>& rows) : requests(rows.size()) {
    static const std::vector<int32_t> kTokens(4096, 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      requests[i].tokens = std::span(kTokens).first(rows[i]);
      queue.push_back(&requests[i]);
    }
  }
  Slices plan(StepLimits limits) {
    StepPlan made;
    made.slices.push_back({nullptr, 77});  // leftovers of a former step
    plan_step(queue, limits, &made);
    Slices slices;
    for (const StepPlan::Slice& slice : made.slices) {
      slices.emplace_back(static_cast<size_t>(slice.request - requests.data()), slice.rows);
    }
    return slices;
  }
  std::vector<StepRequest> requests;
  std::vector<StepRequest*> queue;
};

Slices chosen(const std::vector<size_t>& rows, StepLimits limits) {
  return Waiting(rows).plan(limits);
}

TEST(StepPlan, NothingWaiting) { EXPECT_EQ(chosen({}, {4, 100, 100}), Slices{}); }

TEST(StepPlan, OneSequenceTakesTheOldest) {
  EXPECT_EQ(chosen({50, 1, 1}, {1, 100, 100}), (Slices{{0, 50}}));
  EXPECT_EQ(chosen({1, 50, 1}, {1, 100, 100}), (Slices{{0, 1}}));
}

TEST(StepPlan, DecodingBeforePrompts) {
  EXPECT_EQ(chosen({1, 50, 1, 30, 1}, {8, 100, 100}),
            (Slices{{0, 1}, {2, 1}, {4, 1}, {1, 50}, {3, 30}}));
}

TEST(StepPlan, TheFirstIsNeverPassedOver) {
  EXPECT_EQ(chosen({90, 1, 1, 1}, {2, 100, 100}), (Slices{{1, 1}, {0, 90}}));
  EXPECT_EQ(chosen({90, 1, 1, 1}, {8, 2, 100}), (Slices{{1, 1}, {0, 1}}));
  EXPECT_EQ(chosen({90, 1, 1, 1}, {8, 1, 100}), (Slices{{0, 1}}));
  EXPECT_EQ(chosen({1, 90, 1, 1}, {8, 3, 100}), (Slices{{0, 1}, {2, 1}, {3, 1}}));
}

TEST(StepPlan, PromptsAreCutToTheirBudget) {
  EXPECT_EQ(chosen({200, 1}, {8, 512, 64}), (Slices{{1, 1}, {0, 64}}));
  EXPECT_EQ(chosen({1, 60, 60, 30}, {8, 512, 100}), (Slices{{0, 1}, {1, 60}, {2, 40}}));
  EXPECT_EQ(chosen({1, 60, 60, 30}, {8, 71, 100}), (Slices{{0, 1}, {1, 60}, {2, 10}}));
  EXPECT_EQ(chosen({1, 1, 1}, {8, 2, 100}), (Slices{{0, 1}, {1, 1}}));
}

TEST(StepPlan, PriorityBeforeAge) {
  Waiting waiting({1, 1, 40, 1});
  waiting.requests[1].urgency.priority = 1;
  waiting.requests[3].urgency.priority = 2;
  EXPECT_EQ(waiting.plan({2, 100, 100}), (Slices{{3, 1}, {1, 1}}));
  waiting.requests[2].urgency.priority = 9;
  EXPECT_EQ(waiting.plan({2, 100, 100}), (Slices{{3, 1}, {2, 40}}));
  waiting.requests[0].passed_over = kMaxPassedOver;
  EXPECT_EQ(waiting.plan({2, 100, 100}), (Slices{{0, 1}, {3, 1}}));
  EXPECT_EQ(waiting.plan({2, 100, 100, kMaxPassedOver + 1}), (Slices{{3, 1}, {2, 40}}));
  EXPECT_EQ(waiting.plan({2, 100, 100, 0}), (Slices{{0, 1}, {1, 1}}));
}

// Whatever comes: limits hold, nobody twice, and each request runs within a number of steps that
// does not depend on what else there is to do.
TEST(StepPlan, NobodyStarves) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    uint64_t draws = 0;
    const auto draw = [&](size_t below) {
      return static_cast<size_t>(uniform_double(seed, 1, draws++) * static_cast<double>(below));
    };
    const StepLimits limits{static_cast<int32_t>(1 + draw(4)), static_cast<int32_t>(1 + draw(20)),
                            static_cast<int32_t>(1 + draw(20)), static_cast<int32_t>(draw(40))};
    Waiting waiting(std::vector<size_t>(24, 1));
    std::vector<int> since(waiting.requests.size(), 0);
    const auto renew = [&](StepRequest& request) {
      static const std::vector<int32_t> kTokens(64, 0);
      request.tokens = std::span(kTokens).first(draw(2) == 0 ? 1 : 1 + draw(60));
      request.urgency.priority = static_cast<int32_t>(draw(4));
      request.passed_over = 0;
    };
    for (StepRequest& request : waiting.requests) renew(request);
    for (int step = 0; step < 300; ++step) {
      const Slices slices = waiting.plan(limits);
      ASSERT_FALSE(slices.empty());
      ASSERT_LE(slices.size(), static_cast<size_t>(limits.max_sequences));
      int32_t rows = 0;
      int32_t prompt_rows = 0;
      for (size_t i = 0; i < since.size(); ++i) ++since[i];
      for (StepRequest& request : waiting.requests) ++request.passed_over;
      for (const auto& [index, taken] : slices) {
        StepRequest& request = waiting.requests[index];
        ASSERT_GE(taken, 1);
        ASSERT_LE(taken, request.rows());
        rows += taken;
        if (request.rows() > 1) prompt_rows += taken;
        since[index] = 0;
        renew(request);
        // To the end of the queue.
        waiting.queue.erase(std::find(waiting.queue.begin(), waiting.queue.end(), &request));
        waiting.queue.push_back(&request);
      }
      EXPECT_LE(rows, limits.max_rows);
      EXPECT_LE(prompt_rows, std::max(limits.prompt_rows, 1));
      const int longest = *std::max_element(since.begin(), since.end());
      EXPECT_LE(longest, limits.max_passed_over + static_cast<int>(waiting.requests.size()));
    }
  }
}

// What a request that wants drafts gets of them: what nobody else has asked for.
TEST(StepPlan, DraftsGetWhatIsLeft) {
  const auto drafts = [](const std::vector<size_t>& rows, const std::vector<int32_t>& wanted,
                         StepLimits limits) {
    Waiting waiting(rows);
    std::vector<DraftJob> jobs(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      jobs[i].most = wanted[i];
      if (wanted[i] != 0) waiting.requests[i].draft = &jobs[i];
    }
    StepPlan made;
    plan_step(waiting.queue, limits, &made);
    std::vector<int32_t> given;
    for (const StepPlan::Slice& slice : made.slices) given.push_back(slice.drafts);
    return given;
  };
  using Given = std::vector<int32_t>;
  EXPECT_EQ(drafts({1}, {4}, {8, 100, 100}), (Given{4}));
  EXPECT_EQ(drafts({1}, {-3}, {8, 100, 100}), (Given{0}));
  EXPECT_EQ(drafts({1}, {4}, {8, 3, 100}), (Given{2}));
  EXPECT_EQ(drafts({1}, {4}, {8, 1, 100}), (Given{0}));
  EXPECT_EQ(drafts({1, 1, 1}, {4, 0, 4}, {8, 9, 9}), (Given{4, 0, 2}));
  // A prompt has its rows first, and none of them are drafts'.
  EXPECT_EQ(drafts({1, 50, 1}, {7, 0, 7}, {8, 20, 10}), (Given{7, 1, 0}));
  EXPECT_EQ(drafts({1, 50}, {7, 0}, {8, 51, 100}), (Given{0, 0}));
  EXPECT_EQ(drafts({50, 1}, {0, 7}, {8, 20, 10}), (Given{7, 0}));
}

}  // namespace
}  // namespace gen::generate
