// SPDX-License-Identifier: Apache-2.0
// Proves what happens when sessions share a pool that is too small for all of them: the idle give
// way, then the youngest; everybody gets the same text as alone; and who asks for more than there
// is at all fails without harm.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/metrics_memory.h"
#include "base/rng.h"
#include "generate/batch_run.h"
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "support/fake_model.h"

namespace gen::generate {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int32_t kContext = 128;

/// How long a call waits for blocks that others hold.
enum class Patience : uint8_t {
  kEndless,  // so that no machine is too slow for what takes turns
  kDefault,
};

struct Pooled {
  using Change = void (*)(GeneratorOptions& options);
  explicit Pooled(int32_t entries, int32_t max_sequences = 8,
                  Patience patience = Patience::kEndless, Change change = nullptr) {
    pool = std::make_shared<std::atomic<int32_t>>(entries);
    tokenizer = std::make_shared<test::FakeTokenizer>(
        std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
    model = std::make_shared<test::FakeModel>(tokenizer->vocab_size(), kContext);
    GeneratorOptions options;
    options.prefill_chunk = 5;
    options.max_sequences = max_sequences;
    options.metrics = metrics;
    if (patience == Patience::kEndless) {
      options.max_starving = options.least_starving = std::chrono::hours(1);
    }
    options.measure_caches = [this](Metrics&) {
      if (behind_step) behind_step();
    };
    if (change != nullptr) change(options);
    options.cache_factory = [this, entries](
                                std::span<const cache::LayerShape>,
                                int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
      auto cache = std::make_unique<test::FakeCache>(capacity, true, pool, entries);
      cache->before_has_all_room = before_has_all_room;
      return std::unique_ptr<cache::KvCache>(std::move(cache));
    };
    generator = std::move(Generator::create(model, tokenizer, options)).value();
  }
  std::shared_ptr<Session> session() const { return std::move(generator->new_session()).value(); }

  std::shared_ptr<MetricsMemory> metrics = std::make_shared<MetricsMemory>();
  std::shared_ptr<std::atomic<int32_t>> pool;
  std::function<void()> before_has_all_room;  // of sessions that are made later
  std::function<void()> behind_step;
  std::shared_ptr<test::FakeTokenizer> tokenizer;
  std::shared_ptr<test::FakeModel> model;
  std::shared_ptr<const Generator> generator;
};

CallParams params_of(uint64_t seed, int32_t tokens) {
  CallParams params;
  params.sampling.seed = seed;
  params.stops.ignore_eos = true;
  params.stops.max_new_tokens = tokens;
  return params;
}

std::string prompt_of(uint64_t seed) { return std::string(3 + seed % 19, "abcdef"[seed % 6]); }

Prompt text(std::string_view prompt) { return {.text = prompt, .tokens = {}}; }

GenResult say(Session& session, const std::string& prompt, const CallParams& params) {
  std::optional<GenResult> result;
  const Status status = session.generate(text(prompt), params, nullptr, nullptr, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result.has_value() ? *std::move(result) : GenResult();
}

// What a request says with all the room there is.
Tokens alone(uint64_t seed, int32_t tokens) {
  const Pooled world(10000);
  return say(*world.session(), prompt_of(seed), params_of(seed, tokens)).tokens;
}

TEST(Preemption, ABatchThatDoesNotFitTakesTurns) {
  for (const int32_t entries : {60, 90, 150}) {
    for (const int32_t max_sequences : {1, 3, 8}) {
      const Pooled world(entries, max_sequences);
      std::vector<std::string> prompts;
      std::vector<BatchRequest> requests(8);
      for (uint64_t i = 0; i < requests.size(); ++i) prompts.push_back(prompt_of(i));
      for (uint64_t i = 0; i < requests.size(); ++i) {
        requests[i].prompt.text = prompts[i];
        requests[i].params = params_of(i, 30);
        requests[i].urgency.priority = static_cast<int32_t>(i % 3);
      }
      const auto results = run_batch(*world.generator, requests, nullptr, nullptr);
      for (uint64_t i = 0; i < requests.size(); ++i) {
        EXPECT_TRUE(results[i].status.ok()) << results[i].status.message();
        EXPECT_EQ(results[i].tokens, alone(i, 30)) << entries << " " << max_sequences << " " << i;
      }
      EXPECT_EQ(*world.pool, entries);
    }
  }
}

TEST(Preemption, ThreadsThatDoNotFitTakeTurns) {
  for (const int32_t entries : {60, 130}) {
    const Pooled world(entries);
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        for (uint64_t round = 0; round < 4; ++round) {
          const uint64_t seed = i + 10 * round;
          EXPECT_EQ(say(*world.session(), prompt_of(seed), params_of(seed, 30)).tokens,
                    alone(seed, 30));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(*world.pool, entries);
  }
}

// While a prompt is taken in, over many steps, others wait whose turn it is not: who takes from
// whom goes by age, not by who was last in the queue.
TEST(Preemption, LongPromptsThatDoNotFitTakeTurns) {
  const Tokens expected =
      say(*Pooled(10000).session(), std::string(40, 'b'), params_of(1, 2)).tokens;
  const Pooled world(64);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        EXPECT_EQ(say(*world.session(), std::string(40, 'b'), params_of(1, 2)).tokens, expected);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(*world.pool, 64);
}

// Blocks may come back at any moment of a reservation: no call fails for lack of what it did not
// have.
TEST(Preemption, BlocksThatComeBackAtAnyMoment) {
  const Tokens expected =
      say(*Pooled(10000).session(), std::string(40, 'b'), params_of(1, 2)).tokens;
  for (int moment = 0; moment < 4; ++moment) {
    Pooled world(64);
    world.pool->store(22);  // somebody else has 42
    int asked = 0;
    world.before_has_all_room = [&] {
      if (asked++ == moment) *world.pool += 42;
    };
    EXPECT_EQ(say(*world.session(), std::string(40, 'b'), params_of(1, 2)).tokens, expected)
        << moment;
    EXPECT_GT(asked, moment);
  }
}

// The least recently used goes first, and only as many as must.
TEST(Preemption, IdleSessionsGiveWay) {
  const Pooled world(100);
  const Pooled wide(10000);
  std::vector<std::shared_ptr<Session>> sessions;
  std::vector<std::shared_ptr<Session>> twins;
  for (uint64_t i = 0; i < 3; ++i) {
    sessions.push_back(world.session());
    twins.push_back(wide.session());
    const Tokens said = say(*sessions[i], "abcabc", params_of(i, 20)).tokens;
    EXPECT_EQ(said, say(*twins[i], "abcabc", params_of(i, 20)).tokens);
  }
  // 26 of 27 tokens each are held, and 22 entries are left.
  EXPECT_EQ(*world.pool, 22);
  const auto rows_of = [&](Session& session, uint64_t seed) {
    int64_t rows = 0;
    world.model->before_forward = [&](const graph::Batch& batch) {
      rows += batch.rows();
      return Status();
    };
    auto& twin = *twins[seed];
    EXPECT_EQ(say(session, "de", params_of(seed, 3)).tokens,
              say(twin, "de", params_of(seed, 3)).tokens);
    world.model->before_forward = nullptr;
    return rows;
  };
  const auto newcomer = world.session();
  EXPECT_EQ(say(*newcomer, "abcdefabcdefabc", params_of(9, 10)).tokens,
            say(*wide.session(), "abcdefabcdefabc", params_of(9, 10)).tokens);
  EXPECT_EQ(rows_of(*sessions[2], 2), 1 + 2 + 2);  // the last token was pending
  EXPECT_EQ(rows_of(*sessions[1], 1), 1 + 2 + 2);
  EXPECT_EQ(rows_of(*sessions[0], 0), 27 + 2 + 2);  // all of it anew
  EXPECT_EQ(sessions[0]->length(), 27 + 2 + 3);
}

TEST(Preemption, MoreThanThereIsFailsWithoutHarm) {
  const Pooled world(40);
  const auto session = world.session();
  const Tokens said = say(*session, "abc", params_of(1, 10)).tokens;
  const Tokens before = std::move(session->tokens()).value();
  std::optional<GenResult> result;
  const std::string long_prompt(60, 'a');
  Status status = session->generate(text(long_prompt), params_of(1, 10), nullptr, nullptr, &result);
  EXPECT_EQ(status.code(), Code::kPoolExhausted) << status.message();
  EXPECT_EQ(std::move(session->tokens()).value(), before);
  // A text that grows out of the pool ends there, with what there is so far.
  status = session->generate(text("d"), params_of(1, 60), nullptr, nullptr, &result);
  EXPECT_EQ(status.code(), Code::kPoolExhausted);
  ASSERT_TRUE(result.has_value());
  EXPECT_GT(result->tokens.size(), 20U);
  EXPECT_EQ(std::move(session->tokens()).value(), before);
  const Pooled wide(1000);
  const auto twin = wide.session();
  (void)say(*twin, "abc", params_of(1, 10));
  EXPECT_EQ(say(*session, "d", params_of(2, 8)).tokens, say(*twin, "d", params_of(2, 8)).tokens);
}

// Nor does it wait for others, or take their blocks.
TEST(Preemption, WhatNeverFitsFailsAtOnce) {
  const Pooled world(40);
  const auto idle = world.session();
  const auto session = world.session();
  (void)say(*idle, "abc", params_of(1, 10));
  (void)say(*session, "abc", params_of(2, 10));
  const int32_t left = *world.pool;
  EXPECT_EQ(left, 40 - 2 * 13);  // with a token for the beginning, without the last one
  std::optional<GenResult> result;
  for (const std::shared_ptr<Session>& one : {session, world.session()}) {
    const Status status =
        one->generate(text(std::string(60, 'a')), params_of(1, 1), nullptr, nullptr, &result);
    EXPECT_EQ(status.code(), Code::kPoolExhausted);
    EXPECT_STREQ(status.message(),
                 one == session ? "74 tokens with those evaluated before, the pool has room for 40"
                                : "61 tokens to evaluate, the pool has room for 40");
    EXPECT_EQ(*world.pool, left);
  }
}

// However long older calls take, who waits for their blocks has them in the end.
TEST(Preemption, OlderCallsThatGetOnAreWaitedFor) {
  const Tokens expected =
      say(*Pooled(10000).session(), std::string(20, 'b'), params_of(1, 9)).tokens;
  const Tokens expected_first = alone(11, 16);
  // Again if the machine made the older call stop for as long as one is waited for.
  for (bool got_on = false; !got_on;) {
    const Pooled world(40, 8, Patience::kDefault);
    auto first = std::move(world.session()->open(text(prompt_of(11)), params_of(11, 16))).value();
    auto before = SteadyClock::now();
    ASSERT_TRUE(first->next().ok());
    std::optional<GenResult> said;
    std::thread second([&] {
      (void)world.session()->generate(text(std::string(20, 'b')), params_of(1, 9), nullptr, nullptr,
                                      &said);
    });
    got_on = true;
    Tokens said_first;
    while (first != nullptr) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const auto now = SteadyClock::now();
      EXPECT_TRUE(first->next().ok());
      if (first->ended()) {
        said_first = first->result().tokens;
        first.reset();
      }
      got_on = got_on && SteadyClock::now() - before < kMaxStarving;
      before = now;
    }
    EXPECT_EQ(said_first, expected_first);
    second.join();
    if (!got_on) continue;
    ASSERT_TRUE(said.has_value());
    EXPECT_EQ(said->tokens, expected);
  }
}

// A stream that nobody pulls keeps what it has; another one's failure comes after a moment.
TEST(Preemption, OpenStreamsKeepTheirs) {
  const Pooled world(40, 8, Patience::kDefault);
  auto first = std::move(world.session()->open(text(prompt_of(11)), params_of(11, 25))).value();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(first->next().ok());
  auto second =
      std::move(world.session()->open(text(std::string(20, 'b')), params_of(1, 25))).value();
  const auto begin = std::chrono::steady_clock::now();
  Result<const Event*> event = second->next();
  ASSERT_TRUE(event.ok());
  EXPECT_TRUE((*event)->done);
  EXPECT_EQ(second->result().status.code(), Code::kPoolExhausted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(world.metrics->snapshot().value("queue_length"), 0);  // it waits no longer
  second.reset();
  while (!first->ended()) ASSERT_TRUE(first->next().ok());
  EXPECT_EQ(first->result().tokens, alone(11, 25));
}

// A request that has to wait for blocks says so in the end, also where another one of higher
// priority is tried before it.
TEST(Preemption, WaitingBehindAPriorityEnds) {
  const Pooled world(40, 1, Patience::kDefault);
  auto holder = std::move(world.session()->open(text(prompt_of(11)), params_of(11, 25))).value();
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(holder->next().ok());
  std::vector<std::thread> threads;
  for (const int32_t priority : {0, 5}) {
    threads.emplace_back([&world, priority] {
      Urgency urgency;
      urgency.priority = priority;
      auto generation =
          Generation::open(world.session(), text(std::string(20, 'b')), params_of(1, 25), urgency);
      ASSERT_TRUE(generation.ok());
      ASSERT_TRUE(generation.value()->next().ok());
      EXPECT_EQ(generation.value()->result().status.code(), Code::kPoolExhausted);
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (!holder->ended()) ASSERT_TRUE(holder->next().ok());
  EXPECT_EQ(holder->result().tokens, alone(11, 25));
}

/// A call that is driven by looking by, with what it should say.
struct Call {
  Call(const Pooled& world, std::string_view prompt, uint64_t seed, int32_t tokens,
       int32_t priority)
      : session(world.session()) {
    Urgency urgency;
    urgency.priority = priority;
    generation =
        std::move(Generation::open(session, text(prompt), params_of(seed, tokens), urgency))
            .value();
    const Pooled wide(10000);
    expected = say(*wide.session(), std::string(prompt), params_of(seed, tokens)).tokens;
  }
  /// One look; true when that ended it, as it should. Its session is idle then.
  bool look() {
    if (ended()) return false;
    (void)generation->poll();
    if (!generation->ended()) return false;
    EXPECT_TRUE(generation->result().status.ok()) << generation->result().status.message();
    EXPECT_EQ(generation->result().tokens, expected);
    generation.reset();
    return true;
  }
  [[nodiscard]] bool ended() const { return generation == nullptr; }
  void look_until(int32_t length) {
    while (session->length() < length) (void)look();
  }
  [[nodiscard]] int32_t entries() const { return session->cache().length(); }

  std::shared_ptr<Session> session;
  std::unique_ptr<Generation> generation;
  Tokens expected;
};

// Who came later with a higher priority does not wait for the blocks of who came first.
TEST(Preemption, AnUrgentNewcomerTakesFromAnOldCall) {
  const Pooled world(40);
  Call low(world, prompt_of(11), 11, 20, 0);
  low.look_until(27);
  Call urgent(world, std::string(20, 'b'), 1, 9, 5);
  std::vector<const Call*> order;
  while (order.size() < 2) {
    for (Call* call : {&low, &urgent}) {
      if (call->look()) order.push_back(call);
    }
  }
  EXPECT_EQ(order, (std::vector<const Call*>{&urgent, &low}));
}

// Who gave way in a step that then failed is not failed by it.
TEST(Preemption, AFailedStepIsOfThoseThatRan) {
  const Pooled world(40);
  Call low(world, prompt_of(11), 11, 20, 0);
  low.look_until(27);
  Call urgent(world, std::string(20, 'b'), 1, 9, 5);
  bool thrown = false;
  world.model->before_forward = [&](const graph::Batch&) {
    if (!thrown && low.entries() == 0) {
      thrown = true;
      throw std::bad_alloc();
    }
    return Status();
  };
  while (!low.ended() || !urgent.ended()) {
    for (Call* call : {&low, &urgent}) (void)call->look();
  }
  EXPECT_TRUE(thrown);
}

// A session that is being saved gives its blocks when that is done; until then it is waited for.
TEST(Preemption, SavedSessionsAreWaitedFor) {
  const Pooled world(40, 8, Patience::kDefault, [](GeneratorOptions& options) {
    options.max_starving = std::chrono::hours(1);
    options.least_starving = std::chrono::milliseconds(1);
  });
  const auto idle = world.session();
  (void)say(*idle, "abc", params_of(1, 20));
  std::atomic<bool> begun = false;
  std::thread saver([&] {
    const Status saved = idle->save([&](const cache::StateContents&) {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      return Status();
    });
    EXPECT_TRUE(saved.ok()) << saved.message();
  });
  while (!begun) std::this_thread::yield();
  (void)say(*world.session(), std::string(25, 'b'), params_of(2, 3));
  saver.join();
}

// Blocks that came back during a step are seen before its calls are failed for lack of them.
TEST(Preemption, BlocksThatComeBackBehindAStep) {
  Pooled world(40, 8, Patience::kDefault, [](GeneratorOptions& options) {
    options.max_starving = std::chrono::nanoseconds(0);
    options.least_starving = std::chrono::hours(1);
  });
  auto holder = std::move(world.session()->open(text(prompt_of(11)), params_of(11, 25))).value();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(holder->next().ok());
  int steps = 0;
  world.behind_step = [&] {
    if (++steps == 2) holder.reset();
  };
  (void)say(*world.session(), std::string(25, 'b'), params_of(1, 3));
  EXPECT_EQ(holder, nullptr);
  world.behind_step = nullptr;
}

// Who waits for an older call leaves those behind it what would not be enough.
TEST(Preemption, NobodyGivesWayInVain) {
  const Pooled world(64, 8, Patience::kEndless,
                     [](GeneratorOptions& options) { options.prefill_chunk = 64; });
  Call old(world, prompt_of(11), 11, 25, 0);
  old.look_until(30);
  Call big(world, std::string(36, 'b'), 1, 9, 0);
  Call small(world, "cc", 2, 20, 0);
  while (!small.ended()) {
    for (Call* call : {&big, &small}) (void)call->look();
  }
  EXPECT_EQ(world.metrics->snapshot().value("preemptions"), 0);
  EXPECT_EQ(big.entries(), 0);
  while (!old.ended() || !big.ended()) {
    for (Call* call : {&old, &big}) (void)call->look();
  }
}

// But not for long: nobody behind it starts, and so all of them give way at last, also those that
// never wait at the same moment.
TEST(Preemption, WhoWaitsLongGoesBeforeThoseBehind) {
  const Pooled world(40, 8, Patience::kEndless, [](GeneratorOptions& options) {
    options.prefill_chunk = 128;
    options.max_yielding = std::chrono::nanoseconds(0);
  });
  Call one(world, "aaaa", 1, 13, 0);
  Call two(world, "bbbb", 2, 13, 0);
  one.look_until(14);
  two.look_until(14);
  Call urgent(world, std::string(29, 'c'), 3, 9, 5);
  std::vector<const Call*> order;
  while (order.size() < 3) {
    for (Call* call : {&one, &two}) {
      // It has its token, and so waits for nothing while the other one runs.
      const int32_t before = call->session->length();
      for (int i = 0; i < 8 && call->session->length() == before; ++i) {
        if (call->look()) order.push_back(call);
      }
      if (urgent.look()) order.push_back(&urgent);
    }
  }
  EXPECT_EQ(order.front(), &urgent);
}

// Among those who give way the lowest priority comes first, then the youngest; a priority that is
// not higher takes nothing from older calls.
TEST(Preemption, BlocksGoByPriorityAndThenByAge) {
  for (const int32_t priority : {2, 1, 0}) {
    const Pooled world(60);
    Call old_high(world, "aaaaaaaaa", 1, 30, 1);
    Call low(world, "bbbbbbbbb", 2, 30, 0);
    Call young_high(world, "ccccccccc", 3, 30, 1);
    const std::vector<Call*> calls{&old_high, &low, &young_high};
    for (Call* call : calls) call->look_until(15);
    Call newcomer(world, std::string(20, 'd'), 4, 1, priority);
    for (Call* call : calls) (void)call->look();  // all have something queued
    (void)newcomer.generation->poll();
    (void)newcomer.generation->poll();
    EXPECT_GT(old_high.entries(), 0) << priority;
    EXPECT_EQ(low.entries() == 0, priority > 0) << priority;
    EXPECT_GT(young_high.entries(), 0) << priority;
    bool open = true;
    while (std::exchange(open, false)) {
      for (Call* call : {&old_high, &low, &young_high, &newcomer}) {
        (void)call->look();
        open = open || !call->ended();
      }
    }
    EXPECT_EQ(*world.pool,
              60 - old_high.entries() - low.entries() - young_high.entries() - newcomer.entries());
  }
}

// However many urgent calls there are, always two of them at once: one of low priority is passed
// over by only so many, and then keeps what it gets until its end.
TEST(Preemption, UrgentCallsStarveNobody) {
  const Pooled world(64);
  Call low(world, prompt_of(11), 11, 20, 0);
  low.look_until(20);
  std::vector<std::unique_ptr<Call>> urgent;
  int begun = 0;
  bool ended = false;
  while (!ended && begun < 4 * kMaxPassedOver) {
    while (urgent.size() < 2) {
      urgent.push_back(std::make_unique<Call>(world, std::string(20, 'b'), 1 + begun, 9, 5));
      ++begun;
      for (int i = 0; i < 8; ++i) (void)urgent.back()->look();  // the other one is half way
    }
    ended = low.look();
    for (auto& call : urgent) (void)call->look();
    std::erase_if(urgent, [](const auto& call) { return call->ended(); });
  }
  EXPECT_TRUE(ended);
  EXPECT_GE(begun, kMaxPassedOver);
  EXPECT_LE(begun, kMaxPassedOver + 3);
  for (auto& call : urgent) {
    while (!call->ended()) (void)call->look();
  }
}

}  // namespace
}  // namespace gen::generate
