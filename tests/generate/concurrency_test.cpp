// SPDX-License-Identifier: Apache-2.0
// Proves that many sessions on many threads each say what they say alone, that a session entered
// twice answers kBusy, and that cancelling races with nothing. Run it under the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "support/fake_model.h"

namespace gen::generate {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int32_t kContext = 96;

std::shared_ptr<const Generator> make_generator(int32_t max_sequences) {
  auto tokenizer =
      std::make_shared<test::FakeTokenizer>(std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  auto model = std::make_shared<test::FakeModel>(tokenizer->vocab_size(), kContext);
  GeneratorOptions options;
  options.prefill_chunk = 3;
  options.max_sequences = max_sequences;
  options.cache_factory = [](std::span<const cache::LayerShape>,
                             int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
    return std::unique_ptr<cache::KvCache>(std::make_unique<test::FakeCache>(capacity));
  };
  return std::move(Generator::create(model, tokenizer, options)).value();
}

CallParams params_of(uint64_t seed) {
  CallParams params;
  params.sampling.seed = seed;
  params.stops.ignore_eos = true;
  params.stops.max_new_tokens = 25;
  params.sampling.repetition_penalty = 1.1;
  params.sampling.top_p = 0.9;
  return params;
}

// Two turns on a session.
Tokens talk(Session& session, uint64_t seed) {
  const std::array<std::string, 2> turns{std::string(3 + seed % 17, "abcdef"[seed % 6]), "fed"};
  for (const std::string& turn : turns) {
    std::optional<GenResult> result;
    const Status status =
        session.generate({.text = turn, .tokens = {}}, params_of(seed), nullptr, nullptr, &result);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return std::move(session.tokens()).value();
}

TEST(Concurrency, EachStreamEqualsItsSoloRun) {
  constexpr uint64_t kThreads = 6;
  constexpr uint64_t kSessions = 4;  // of each thread, one after another
  std::vector<Tokens> alone;
  {
    const auto generator = make_generator(1);
    for (uint64_t seed = 0; seed < kThreads * kSessions; ++seed) {
      alone.push_back(talk(*std::move(generator->new_session()).value(), seed));
    }
  }
  for (const int32_t max_sequences : {1, 3, 16}) {
    const auto generator = make_generator(max_sequences);
    std::vector<Tokens> together(alone.size());
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (uint64_t i = 0; i < kSessions; ++i) {
          const uint64_t seed = thread * kSessions + i;
          together[seed] = talk(*std::move(generator->new_session()).value(), seed);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(together, alone) << max_sequences;
  }
}

// Whoever comes while a call is in the model is told so, whatever is asked; the call says what it
// says alone.
TEST(Concurrency, ASessionInUseIsBusy) {
  const auto generator = make_generator(1);
  const Tokens alone = talk(*std::move(generator->new_session()).value(), 3);
  const auto session = std::move(generator->new_session()).value();
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};
  const std::array<std::atomic<bool>*, 2> doors{&entered, &open};
  const auto linger = [](void* user, const Event&) -> int32_t {
    const auto& [in, out] = *static_cast<const std::array<std::atomic<bool>*, 2>*>(user);
    *in = true;
    while (!*out) std::this_thread::yield();
    return 0;
  };
  Tokens said;
  std::thread thread([&] {
    std::optional<GenResult> result;
    void* const user = const_cast<std::array<std::atomic<bool>*, 2>*>(&doors);
    EXPECT_TRUE(
        session->generate({.text = "a", .tokens = {}}, params_of(3), linger, user, &result).ok());
    said = result->tokens;
  });
  while (!entered) std::this_thread::yield();
  std::vector<float> scores;
  std::optional<GenResult> none;
  const Prompt prompt{.text = "b", .tokens = {}};
  EXPECT_EQ(session->generate(prompt, params_of(3), nullptr, nullptr, &none).code(), Code::kBusy);
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(session->open(prompt, params_of(3)).status().code(), Code::kBusy);
  EXPECT_EQ(session->append(prompt).code(), Code::kBusy);
  EXPECT_EQ(session->score(prompt, &scores, nullptr).code(), Code::kBusy);
  EXPECT_EQ(session->truncate(0).code(), Code::kBusy);
  EXPECT_EQ(session->reset().code(), Code::kBusy);
  EXPECT_EQ(session->fork().status().code(), Code::kBusy);
  EXPECT_EQ(session->tokens().status().code(), Code::kBusy);
  EXPECT_EQ(session->set_cancel(nullptr).code(), Code::kBusy);
  EXPECT_EQ(session->length(), 2 + 1);  // with BOS and what has been said
  open = true;
  thread.join();
  const auto fresh = std::move(generator->new_session()).value();
  std::optional<GenResult> expected;
  ASSERT_TRUE(
      fresh->generate({.text = "a", .tokens = {}}, params_of(3), nullptr, nullptr, &expected).ok());
  EXPECT_EQ(said, expected->tokens);
  ASSERT_TRUE(session->reset().ok());
  EXPECT_EQ(talk(*session, 3), alone);
}

// Threads that push each other out of a session do not break it.
TEST(Concurrency, OneSessionManyThreads) {
  const auto generator = make_generator(1);
  const Tokens alone = talk(*std::move(generator->new_session()).value(), 3);
  const auto session = std::move(generator->new_session()).value();
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 30; ++i) {
        std::optional<GenResult> result;
        CallParams params = params_of(thread);
        params.stops.max_new_tokens = 2;
        const Status status =
            session->generate({.text = "a", .tokens = {}}, params, nullptr, nullptr, &result);
        EXPECT_TRUE(status.ok() || status.code() == Code::kBusy ||
                    status.code() == Code::kContextFull)
            << status.message();
        EXPECT_EQ(result.has_value(), status.ok());
        const Status reset = session->reset();
        EXPECT_TRUE(reset.ok() || reset.code() == Code::kBusy);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(session->reset().ok());
  EXPECT_EQ(talk(*session, 3), alone);
}

// Siblings of a session that is cancelled all the time say what they say alone, and so does it in
// the end.
TEST(Concurrency, CancellingDisturbsNobody) {
  for (const int32_t max_sequences : {1, 8}) {
    const auto generator = make_generator(max_sequences);
    std::vector<Tokens> alone;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      alone.push_back(talk(*std::move(generator->new_session()).value(), seed));
    }
    const auto victim = std::move(generator->new_session()).value();
    std::atomic<bool> over{false};
    std::thread canceller([&] {
      while (!over) {
        victim->cancel();
        std::this_thread::yield();
      }
    });
    std::thread sufferer([&] {
      while (!over) {
        std::optional<GenResult> result;
        const Status status = victim->generate({.text = "abcdef", .tokens = {}}, params_of(9),
                                               nullptr, nullptr, &result);
        EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.message();
        EXPECT_TRUE(victim->reset().ok());
      }
    });
    std::vector<std::thread> siblings;
    std::vector<Tokens> together(4);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      siblings.emplace_back([&, seed] {
        for (int i = 0; i < 5; ++i) {
          together[seed] = talk(*std::move(generator->new_session()).value(), seed);
        }
      });
    }
    for (std::thread& sibling : siblings) sibling.join();
    over = true;
    canceller.join();
    sufferer.join();
    EXPECT_EQ(together, alone);
    ASSERT_TRUE(victim->reset().ok());
    EXPECT_EQ(talk(*victim, 2), alone[2]);
  }
}

// While one session's callback does not return, another one says all it has to say; the first one
// then says what it says alone.
TEST(Concurrency, ASlowCallbackHoldsUpNobody) {
  const auto generator = make_generator(8);
  const Tokens alone = talk(*std::move(generator->new_session()).value(), 3);
  const auto slow = std::move(generator->new_session()).value();
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};
  const std::array<std::atomic<bool>*, 2> doors{&entered, &open};
  const auto linger = [](void* user, const Event&) -> int32_t {
    const auto& [in, out] = *static_cast<const std::array<std::atomic<bool>*, 2>*>(user);
    *in = true;
    while (!*out) std::this_thread::yield();
    return 0;
  };
  std::thread thread([&] {
    std::optional<GenResult> result;
    void* const user = const_cast<std::array<std::atomic<bool>*, 2>*>(&doors);
    EXPECT_TRUE(
        slow->generate({.text = "aaa", .tokens = {}}, params_of(5), linger, user, &result).ok());
  });
  while (!entered) std::this_thread::yield();
  EXPECT_EQ(talk(*std::move(generator->new_session()).value(), 3), alone);
  open = true;
  thread.join();
}

// Handles are dropped in every order while streams are open.
TEST(Concurrency, DroppingHandlesWhileOthersWork) {
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (int i = 0; i < 40; ++i) {
        auto generator = make_generator(2);
        auto session = std::move(generator->new_session()).value();
        auto generation =
            std::move(session->open({.text = "abc", .tokens = {}}, params_of(thread))).value();
        generator.reset();
        std::thread other([session] { session->cancel(); });
        session.reset();
        for (int n = 0; n < 3 && !generation->ended(); ++n) (void)generation->next();
        generation.reset();
        other.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gen::generate
