// SPDX-License-Identifier: Apache-2.0
// Proves a step's contract with a recording model: reserve, run, hand out; what ran is its owner's
// to commit, and nobody else's; one sequence's failure is its own; concurrent sequences get what
// they would get alone.
#include "generate/step/scheduler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "support/fake_model.h"

namespace gen::generate {
namespace {

using cache::CachePlan;
using test::FakeCache;
using test::FakeModel;

constexpr int32_t kVocab = 11;

// A sequence of its own, stepped by hand.
struct Stepper {
  explicit Stepper(int32_t capacity = 64) : cache(capacity) {}

  StepRequest request(const std::vector<int32_t>& tokens) {
    wants.assign(tokens.size(), 0);
    wants.back() = 1;
    logits.assign(kVocab, -1.0F);
    StepRequest made;
    made.cache = &cache;
    made.tokens = tokens;
    made.first_position = cache.length();
    made.wants = wants;
    made.query.logits = logits.data();
    return made;
  }

  FakeCache cache;
  std::vector<uint8_t> wants;
  std::vector<float> logits;
};

// What the owner of a sequence does: runs rows and commits them.
Status run(Scheduler& scheduler, StepRequest* request) {
  const Status status = scheduler.run(request);
  if (request->taken > 0) request->cache->commit(request->plan, {request->taken});
  return status;
}

std::vector<float> logits_after(const FakeModel& model, const std::vector<int32_t>& history) {
  std::vector<float> logits(kVocab);
  model.write_logits(history, logits.data());
  return logits;
}

TEST(Scheduler, RunsAndCommits) {
  const FakeModel model(kVocab);
  Scheduler scheduler(model, {});
  Stepper one;
  const std::vector<int32_t> prompt{1, 2, 3};
  StepRequest first = one.request(prompt);
  ASSERT_TRUE(run(scheduler, &first).ok());
  EXPECT_EQ(one.cache.length(), 3);
  EXPECT_EQ(one.logits, logits_after(model, {1, 2, 3}));
  const std::vector<int32_t> token{4};
  StepRequest second = one.request(token);
  ASSERT_TRUE(run(scheduler, &second).ok());
  EXPECT_EQ(one.cache.length(), 4);
  EXPECT_EQ(one.logits, logits_after(model, {1, 2, 3, 4}));
}

TEST(Scheduler, CommitsNothing) {
  const FakeModel model(kVocab);
  Scheduler scheduler(model, {});
  Stepper one;
  const std::vector<int32_t> prompt{1, 2, 3};
  StepRequest first = one.request(prompt);
  ASSERT_TRUE(scheduler.run(&first).ok());
  EXPECT_EQ(first.taken, 3);
  EXPECT_EQ(one.cache.length(), 0);
  // The owner keeps the first two, and another row comes behind them.
  one.cache.commit(first.plan, {2});
  EXPECT_EQ(one.cache.length(), 2);
  const std::vector<int32_t> token{4};
  StepRequest second = one.request(token);
  ASSERT_TRUE(scheduler.run(&second).ok());
  EXPECT_EQ(one.logits, logits_after(model, {1, 2, 4}));
  // A plan that is dropped leaves what there was.
  StepRequest third = one.request(token);
  ASSERT_TRUE(scheduler.run(&third).ok());
  EXPECT_EQ(one.logits, logits_after(model, {1, 2, 4}));
}

// A request that is taken back when a step has run it leaves its plan to its owner.
TEST(Scheduler, WithdrawnWhenDone) {
  const FakeModel model(kVocab);
  Scheduler scheduler(model, {});
  Stepper one;
  const std::vector<int32_t> prompt{1, 2, 3};
  StepRequest request = one.request(prompt);
  scheduler.submit(&request);
  ASSERT_TRUE(scheduler.poll(&request));
  scheduler.withdraw(&request);
  EXPECT_TRUE(request.status.ok());
  EXPECT_EQ(request.taken, 3);
  EXPECT_EQ(one.cache.length(), 0);
}

TEST(Scheduler, FailuresChangeNothing) {
  FakeModel model(kVocab);
  Scheduler scheduler(model, {});
  Stepper one(4);
  const std::vector<int32_t> tokens{1, 2, 3};
  StepRequest request = one.request(tokens);
  ASSERT_TRUE(run(scheduler, &request).ok());

  request = one.request(tokens);  // four entries at most
  EXPECT_EQ(run(scheduler, &request).code(), Code::kCacheFull);
  EXPECT_EQ(model.forwards, 1);

  const std::vector<int32_t> token{4};
  CancelFlag cancel;
  cancel.fire();
  request = one.request(token);
  request.cancel = &cancel;
  EXPECT_EQ(run(scheduler, &request).code(), Code::kCancelled);
  EXPECT_EQ(model.forwards, 1);

  cancel.reset();
  model.before_forward = [&](const graph::Batch& batch) {
    EXPECT_EQ(batch.cancel, &cancel);
    return error(Code::kModel, "no");
  };
  EXPECT_EQ(run(scheduler, &request).code(), Code::kModel);
  model.before_forward = [](const graph::Batch&) -> Status { throw std::bad_alloc(); };
  EXPECT_EQ(run(scheduler, &request).code(), Code::kOutOfMemory);
  model.before_forward = [](const graph::Batch&) -> Status { throw 7; };
  EXPECT_EQ(run(scheduler, &request).code(), Code::kInternal);
  EXPECT_EQ(one.cache.length(), 3);

  model.before_forward = nullptr;
  ASSERT_TRUE(run(scheduler, &request).ok());
  EXPECT_EQ(one.logits, logits_after(model, {1, 2, 3, 4}));
}

// What waits for blocks goes into the next step as it came, and is drafted anew there.
TEST(Scheduler, DraftsOfAStarvedRequestAreGone) {
  struct Chain final : Drafter {
    int32_t max_rows() const noexcept override { return 2; }
    std::unique_ptr<DraftState> begin() override { return nullptr; }
    void propose(std::span<DraftJob* const> jobs) override {
      for (DraftJob* job : jobs) job->tree.add(6, job->tree.add(5, 0));
    }
  } drafter;
  FakeModel model(kVocab);
  std::vector<std::vector<int32_t>> passes;
  model.before_forward = [&](const graph::Batch& batch) -> Status {
    passes.emplace_back(batch.tokens.begin(), batch.tokens.end());
    return {};
  };
  StepLimits limits;
  limits.max_starving = limits.least_starving = std::chrono::hours(1);
  Scheduler scheduler(model, limits, nullptr, no_metrics(), nullptr, &drafter);
  const auto pool = std::make_shared<std::atomic<int32_t>>(1);
  FakeCache cache(16, true, pool);
  const CachePlan held = cache.plan(1).value();
  cache.write(0, 3);
  cache.commit(held);
  const std::vector<int32_t> token{4};
  const std::vector<uint8_t> wants{1};
  std::vector<float> logits(3 * kVocab);
  DraftJob job;
  job.tokens = token;
  job.most = 2;
  job.tree.begin(4);
  StepRequest request;
  request.cache = &cache;
  request.tokens = token;
  request.first_position = 1;
  request.wants = wants;
  request.query.logits = logits.data();
  request.draft = &job;
  scheduler.submit(&request);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(scheduler.poll(&request));
    EXPECT_EQ(request.rows(), 1);
    EXPECT_EQ(job.tree.rows(), 1);
  }
  *pool = 8;
  ASSERT_TRUE(scheduler.poll(&request));
  ASSERT_TRUE(request.status.ok());
  EXPECT_EQ(request.taken, 3);
  EXPECT_EQ(passes, (std::vector<std::vector<int32_t>>{{4, 5, 6}}));
  EXPECT_EQ(std::vector<float>(logits.begin(), logits.begin() + kVocab),
            logits_after(model, {3, 4}));
  EXPECT_EQ(std::vector<float>(logits.begin() + kVocab, logits.begin() + 2 * kVocab),
            logits_after(model, {3, 4, 5}));
}

// Holds the first step until all others wait, so that the second step has several to choose from.
class Meeting {
 public:
  explicit Meeting(FakeModel* model) {
    model->before_forward = [this](const graph::Batch& batch) { return hold(batch); };
  }
  Status hold(const graph::Batch& batch) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      sizes.push_back(batch.sequences.size());
    }
    if (first.exchange(false)) {
      entered = true;
      while (!open) std::this_thread::yield();
    }
    return fail ? fail(batch) : Status();
  }
  std::mutex mutex;
  std::vector<size_t> sizes;
  std::atomic<bool> first{true};
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};
  std::function<Status(const graph::Batch&)> fail;
};

// Starts `n` sequences that each run one token equal to their index, all meeting in the second
// step; returns their statuses.
std::vector<Status> meet(Scheduler* scheduler, Meeting* meeting, std::vector<Stepper>* steppers) {
  std::vector<Status> statuses(steppers->size());
  std::vector<std::thread> threads;
  const auto start = [&](size_t i) {
    threads.emplace_back([&, i] {
      const std::vector<int32_t> token{static_cast<int32_t>(i)};
      StepRequest request = (*steppers)[i].request(token);
      statuses[i] = run(*scheduler, &request);
    });
  };
  start(0);
  while (!meeting->entered) std::this_thread::yield();
  for (size_t i = 1; i < steppers->size(); ++i) start(i);
  while (scheduler->waiting() < steppers->size()) std::this_thread::yield();
  meeting->open = true;
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

TEST(Scheduler, WaitingSequencesShareAStep) {
  FakeModel model(kVocab);
  Meeting meeting(&model);
  Scheduler scheduler(model, {8, 512});
  std::vector<Stepper> steppers(5);
  for (const Status& status : meet(&scheduler, &meeting, &steppers)) EXPECT_TRUE(status.ok());
  EXPECT_EQ(meeting.sizes, (std::vector<size_t>{1, 4}));
  for (size_t i = 0; i < steppers.size(); ++i) {
    EXPECT_EQ(steppers[i].logits, logits_after(model, {static_cast<int32_t>(i)}));
    EXPECT_EQ(steppers[i].cache.length(), 1);
  }
}

TEST(Scheduler, OneBadSequenceFailsAlone) {
  FakeModel model(kVocab);
  Meeting meeting(&model);
  meeting.fail = [](const graph::Batch& batch) {
    for (const int32_t token : batch.tokens) {
      if (token == 3) return error(Code::kModel, "token 3");
    }
    return Status();
  };
  Scheduler scheduler(model, {8, 512});
  std::vector<Stepper> steppers(5);
  steppers[2].cache.plans_until_failure = 0;
  const std::vector<Status> statuses = meet(&scheduler, &meeting, &steppers);
  for (size_t i = 0; i < steppers.size(); ++i) {
    const Code expected = i == 3 ? Code::kModel : Code::kOk;
    // The injected failure of a reservation is over when the sequence is tried alone.
    EXPECT_EQ(statuses[i].code(), expected) << i;
    EXPECT_EQ(steppers[i].cache.length(), i == 3 ? 0 : 1);
  }
}

TEST(Scheduler, PromptsAreCutToTheirBudget) {
  const FakeModel model(kVocab);
  Scheduler scheduler(model, {8, 512, 4});
  Stepper one;
  const std::vector<int32_t> prompt{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  StepRequest request = one.request(prompt);
  const std::vector<float> untouched = one.logits;
  int32_t at = 0;
  for (const int32_t expected : {4, 4, 2}) {
    EXPECT_EQ(one.logits, untouched);
    ASSERT_TRUE(run(scheduler, &request).ok());
    EXPECT_EQ(request.taken, expected);
    at += request.taken;
    EXPECT_EQ(one.cache.length(), at);
    request.tokens = std::span(prompt).subspan(static_cast<size_t>(at));
    request.wants = std::span(one.wants).subspan(static_cast<size_t>(at));
    request.first_position = at;
  }
  EXPECT_EQ(one.logits, logits_after(model, prompt));
}

TEST(Scheduler, PollingRunsOneStepForAllThatIsQueued) {
  const FakeModel model(kVocab);
  Scheduler scheduler(model, {2, 512, 512});
  std::vector<Stepper> steppers(3);
  std::vector<std::vector<int32_t>> tokens{{1}, {2}, {3}};
  std::vector<StepRequest> requests;
  for (size_t i = 0; i < 3; ++i) requests.push_back(steppers[i].request(tokens[i]));
  for (StepRequest& request : requests) scheduler.submit(&request);
  EXPECT_EQ(model.forwards, 0);
  EXPECT_FALSE(scheduler.poll(&requests[2]));  // two fit, and it came last
  EXPECT_EQ(model.forwards, 1);
  EXPECT_TRUE(scheduler.poll(&requests[0]));
  EXPECT_TRUE(scheduler.poll(&requests[1]));
  EXPECT_EQ(model.forwards, 1);
  EXPECT_TRUE(scheduler.poll(&requests[2]));
  EXPECT_EQ(model.forwards, 2);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(steppers[i].logits, logits_after(model, tokens[i]));
}

TEST(Scheduler, WithdrawnRequestsAreGone) {
  FakeModel model(kVocab);
  Meeting meeting(&model);
  Scheduler scheduler(model, {1, 512, 512});
  Stepper running;
  Stepper queued;
  const std::vector<int32_t> token{1};
  StepRequest first = running.request(token);
  StepRequest second = queued.request(token);
  scheduler.submit(&first);
  StepRequest* const wanted = &first;
  std::thread leader([&] { EXPECT_TRUE(scheduler.wait_any({&wanted, 1})); });
  while (!meeting.entered) std::this_thread::yield();
  scheduler.submit(&second);
  scheduler.withdraw(&second);
  EXPECT_TRUE(second.done);
  EXPECT_EQ(second.status.code(), Code::kCancelled);
  EXPECT_EQ(scheduler.waiting(), 1U);
  // What is running is waited for, and has run.
  std::thread opener([&] { meeting.open = true; });
  scheduler.withdraw(&first);
  EXPECT_TRUE(first.done);
  EXPECT_TRUE(first.status.ok());
  EXPECT_EQ(running.logits, logits_after(model, {1}));
  opener.join();
  leader.join();
  EXPECT_EQ(queued.cache.length(), 0);
  scheduler.withdraw(&first);  // done: nothing happens
  EXPECT_EQ(model.forwards, 1);
}

// The end of a request that waits for its turn does not have to wait for it.
TEST(Scheduler, CancelledAndLateRequestsLeaveTheQueue) {
  FakeModel model(kVocab);
  Scheduler scheduler(model, {1, 512, 512});
  std::vector<Stepper> steppers(3);
  const std::vector<int32_t> token{1};
  CancelFlag cancel;
  StepRequest first = steppers[0].request(token);
  StepRequest cancelled = steppers[1].request(token);
  StepRequest late = steppers[2].request(token);
  cancelled.cancel = &cancel;
  late.urgency.deadline = SteadyClock::now() - std::chrono::seconds(1);
  for (StepRequest* request : {&first, &cancelled, &late}) scheduler.submit(request);
  cancel.fire();
  EXPECT_TRUE(scheduler.poll(&first));
  EXPECT_TRUE(first.status.ok());
  EXPECT_TRUE(cancelled.done);
  EXPECT_TRUE(late.done);
  EXPECT_EQ(cancelled.status.code(), Code::kCancelled);
  EXPECT_EQ(late.status.code(), Code::kCancelled);
  EXPECT_NE(std::string(late.status.message()).find("deadline"), std::string::npos);
  EXPECT_EQ(scheduler.waiting(), 0U);
}

// Two callers that have met in a step share the next ones; without waiting for each other they
// would take turns. Here a step waits for as long as it must, so a slow machine changes nothing.
TEST(Scheduler, QuickParticipantsMeetAgain) {
  FakeModel model(kVocab, 256);
  std::atomic<int> shared{0};
  model.before_forward = [&](const graph::Batch& batch) {
    if (batch.sequences.size() == 2) ++shared;
    return Status();
  };
  StepLimits limits{8, 512, 512};
  limits.least_patience = limits.max_patience = std::chrono::hours(1);
  Scheduler scheduler(model, limits);
  constexpr int kSteps = 20;
  const std::vector<int32_t> token{1};
  Participant participants[2] = {Participant(&scheduler.queue()), Participant(&scheduler.queue())};
  Stepper steppers[2];
  StepRequest first[2];
  for (int i : {0, 1}) {
    first[i] = steppers[i].request(token);
    first[i].participant = &participants[i];
    scheduler.submit(&first[i]);
  }
  for (StepRequest& request : first) {
    StepRequest* const one = &request;
    EXPECT_TRUE(scheduler.wait_any({&one, 1}));
    EXPECT_TRUE(request.status.ok());
    request.cache->commit(request.plan, {request.taken});
  }
  ASSERT_EQ(shared, 1);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      for (int step = 0; step < kSteps; ++step) {
        StepRequest request = steppers[thread].request(token);
        request.participant = &participants[thread];
        EXPECT_TRUE(run(scheduler, &request).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, kSteps + 1);
}

// One thread that polls several: a step waits for a call that still has tokens to give, as long as
// it gives some, and once more.
TEST(Scheduler, PollingWaitsForCallsThatHaveTokensToGive) {
  const FakeModel model(kVocab);
  Scheduler scheduler(model, {8, 512, 512});
  Participant quick(&scheduler.queue());
  Participant rich(&scheduler.queue());
  Stepper one;
  Stepper two;
  const std::vector<int32_t> token{1};
  scheduler.queue().note_said(&rich, true);
  StepRequest waits = one.request(token);
  waits.participant = &quick;
  scheduler.submit(&waits);
  EXPECT_FALSE(scheduler.poll(&waits));
  for (int32_t more = 2; more >= 0; --more) {
    scheduler.queue().note_said(&rich, more > 0);
    EXPECT_FALSE(scheduler.poll(&waits)) << more;
  }
  StepRequest joins = two.request(token);
  joins.participant = &rich;
  scheduler.submit(&joins);
  EXPECT_EQ(model.forwards, 0);
  EXPECT_TRUE(scheduler.poll(&waits));
  EXPECT_TRUE(scheduler.poll(&joins));
  EXPECT_EQ(model.forwards, 1);
  one.cache.commit(waits.plan, {1});
  two.cache.commit(joins.plan, {1});

  // Who gives nothing keeps nobody.
  scheduler.queue().note_said(&rich, true);
  StepRequest alone = one.request(token);
  alone.participant = &quick;
  scheduler.submit(&alone);
  EXPECT_FALSE(scheduler.poll(&alone));
  EXPECT_TRUE(scheduler.poll(&alone));
  one.cache.commit(alone.plan, {1});
  // Nor does who has ended, is gone, or is back.
  scheduler.queue().note_said(&rich, true);
  scheduler.queue().note_ended(&rich);
  {
    Participant leaves(&scheduler.queue());
    scheduler.queue().note_said(&leaves, true);
  }
  StepRequest back = two.request(token);
  back.participant = &rich;
  scheduler.submit(&back);
  StepRequest last = one.request(token);
  last.participant = &quick;
  scheduler.submit(&last);
  EXPECT_TRUE(scheduler.poll(&last));
  EXPECT_TRUE(scheduler.poll(&back));
}

TEST(Scheduler, ConcurrentSequencesEqualSolo) {
  constexpr size_t kThreads = 6;
  constexpr int32_t kSteps = 60;
  for (const int32_t together : {1, 4}) {
    const FakeModel model(kVocab, 256);
    Scheduler scheduler(model, {together, 512});
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Stepper one(kSteps);
        std::vector<int32_t> history;
        for (int32_t step = 0; step < kSteps; ++step) {
          const std::vector<int32_t> token{static_cast<int32_t>(i) + step % 3};
          StepRequest request = one.request(token);
          if (!run(scheduler, &request).ok()) ++wrong;
          history.push_back(token.front());
          if (one.logits != logits_after(model, history)) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace gen::generate
