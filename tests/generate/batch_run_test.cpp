// SPDX-License-Identifier: Apache-2.0
// Proves that deadlines and cancels reach a batch's requests whether or not they have begun.
#include "generate/batch_run.h"

#include <gtest/gtest.h>

#include <functional>

#include "generate/fake_world.h"

namespace gen::generate {
namespace {

/// A batch whose events are written down in the order in which they come.
struct Batch {
  explicit Batch(size_t count, int32_t max_sequences) : requests(count) {
    world.options.max_sequences = max_sequences;
    for (BatchRequest& request : requests) {
      request.prompt.tokens = prompt;
      request.params = greedy(4);
      request.params.stops.ignore_eos = true;
    }
  }
  void run() {
    (void)world.session();  // makes the generator
    const auto note = [](void* user, size_t index, const Event& event) -> int32_t {
      auto& batch = *static_cast<Batch*>(user);
      batch.order.push_back(event.done ? "end " + std::to_string(index) : std::to_string(index));
      if (batch.on_event) batch.on_event(index, event);
      return 0;
    };
    results = run_batch(*world.generator, requests, note, this);
  }

  World world;
  Tokens prompt{2, 3, 4};
  std::vector<BatchRequest> requests;
  std::function<void(size_t index, const Event& event)> on_event;
  Strings order;
  std::vector<GenResult> results;
};

void expect_cancelled(const GenResult& result, const char* message) {
  EXPECT_EQ(result.status.code(), Code::kCancelled);
  EXPECT_STREQ(result.status.message(), message);
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(result.tokens.empty());
}

TEST(BatchRun, ADeadlineReachesWhatHasNotBegun) {
  Batch batch(3, 1);
  batch.requests[1].urgency.deadline = SteadyClock::now() - std::chrono::seconds(1);
  batch.run();
  EXPECT_EQ(batch.order,
            (Strings{"end 1", "0", "0", "0", "0", "end 0", "2", "2", "2", "2", "end 2"}));
  expect_cancelled(batch.results[1], "the deadline has passed after 0 tokens");
  EXPECT_EQ(batch.results[0].tokens, batch.results[2].tokens);
}

// The deadline passes while another request runs.
TEST(BatchRun, ADeadlineThatComesMeanwhile) {
  Batch batch(2, 1);
  batch.on_event = [&](size_t index, const Event& event) {
    if (index == 0 && event.index == 1) batch.requests[1].urgency.deadline = SteadyClock::now();
  };
  batch.run();
  EXPECT_EQ(batch.order, (Strings{"0", "0", "end 1", "0", "0", "end 0"}));
  expect_cancelled(batch.results[1], "the deadline has passed after 0 tokens");
}

TEST(BatchRun, ACancelReachesWhatHasNotBegun) {
  Batch batch(4, 1);
  const auto cancel = std::make_shared<CancelFlag>();
  batch.requests[2].params.cancel = cancel;
  batch.requests[3].params.cancel = cancel;
  batch.on_event = [&](size_t index, const Event& event) {
    if (index == 0 && event.index == 1) cancel->fire();
  };
  batch.run();
  EXPECT_EQ(batch.order,
            (Strings{"0", "0", "end 2", "end 3", "0", "0", "end 0", "1", "1", "1", "1", "end 1"}));
  expect_cancelled(batch.results[2], "cancelled after 0 tokens");
  expect_cancelled(batch.results[3], "cancelled after 0 tokens");
  EXPECT_TRUE(batch.results[1].status.ok());
}

// A cancel that comes out of the end of another one that is cancelled.
TEST(BatchRun, CancelsInTheCallbacksOfCancels) {
  Batch batch(3, 1);
  const auto first = std::make_shared<CancelFlag>();
  const auto second = std::make_shared<CancelFlag>();
  batch.requests[1].params.cancel = second;
  batch.requests[2].params.cancel = first;
  batch.on_event = [&](size_t index, const Event& event) {
    if (index == 0 && event.index == 0) first->fire();
    if (index == 2) second->fire();
  };
  batch.run();
  EXPECT_EQ(batch.order, (Strings{"0", "end 2", "end 1", "0", "0", "0", "end 0"}));
}

// All of them are over before anything runs.
TEST(BatchRun, NothingRunsForWhatIsLate) {
  Batch batch(3, 8);
  for (BatchRequest& request : batch.requests) {
    request.urgency.deadline = SteadyClock::now() - std::chrono::seconds(1);
  }
  batch.run();
  EXPECT_EQ(batch.order, (Strings{"end 0", "end 1", "end 2"}));
  EXPECT_EQ(batch.world.model->forwards, 0);
}

}  // namespace
}  // namespace gen::generate
