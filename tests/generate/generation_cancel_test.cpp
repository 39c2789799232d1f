// SPDX-License-Identifier: Apache-2.0
// Proves what is left when a call is ended from outside at every step: by the session's cancel, the
// caller's, a callback's answer, or closing.
#include <gtest/gtest.h>

#include "generate/fake_world.h"
#include "generate/loop/generation.h"

namespace gen::generate {
namespace {

// Cancel before each forward pass, from within it, and from each callback.
TEST(Generation, CancelAtEveryStep) {
  World world(64, 2);
  const Tokens prompt{0, 2, 3, 4, 5, 6, 7};  // four chunks
  CallParams params = greedy(6);
  params.stops.ignore_eos = true;
  const Tokens all = fresh_continuation(world, prompt, 6);
  for (int step = 0; step < 9; ++step) {
    for (const bool own_flag : {true, false}) {
      const auto session = world.session();
      const auto flag = std::make_shared<CancelFlag>();
      params.cancel = flag;
      int countdown = step;
      world.model->before_forward = [&](const graph::Batch&) {
        if (countdown-- == 0) {
          if (own_flag) {
            session->cancel();
          } else {
            flag->fire();
          }
        }
        return Status();
      };
      const Outcome outcome = generate(*session, ids(prompt), params);
      world.model->before_forward = nullptr;
      EXPECT_EQ(outcome.status.code(), Code::kCancelled);
      ASSERT_TRUE(outcome.result.has_value());
      EXPECT_EQ(outcome.result->finish_reason, FinishReason::kCancelled);
      // Passes 0 to 3 are chunks; the pass that was cancelled is not committed.
      const size_t said = step < 4 ? 0 : static_cast<size_t>(step - 3);
      EXPECT_EQ(outcome.result->tokens, Tokens(all.begin(), all.begin() + static_cast<int>(said)));
      const size_t kept = step < 4 ? static_cast<size_t>(2 * step) : prompt.size() + said;
      EXPECT_EQ(session->length(), static_cast<int32_t>(kept)) << step;
      expect_consistent(world, *session);
      // The flag of the session is consumed, the caller's is his own.
      params.cancel = nullptr;
      if (kept == 0) continue;
      const Tokens before = held(*session);
      const Tokens expected = fresh_continuation(world, before, 6);
      EXPECT_EQ(generate(*session, text(""), params).result->tokens, expected) << step;
    }
  }
}

TEST(Generation, CancelFromTheCallback) {
  World world;
  CallParams params = greedy(20);
  params.stops.ignore_eos = true;
  const auto session = world.session();
  std::optional<GenResult> result;
  const Status status = session->generate(
      text("a"), params,
      [](void* user, const Event& event) {
        if (event.index == 2) static_cast<Session*>(user)->cancel();
        return 0;
      },
      session.get(), &result);
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(result->tokens.size(), 3U);
  EXPECT_EQ(session->length(), 5);
}

// A cancel is a pause: a character that it cuts comes with the next call.
TEST(Generation, CancelInTheMiddleOfACharacter) {
  for (int stop_at = 0; stop_at < 4; ++stop_at) {
    World world;
    const auto session = world.session();
    world.script(2, world.ids({"\xF0", "\x9F", "\x98", "\x80"}));
    std::string joined;
    {
      auto generation = std::move(session->open(text("a"), greedy(20))).value();
      for (int i = 0; i <= stop_at; ++i) ASSERT_TRUE(generation->next().ok());
      generation->stop(1);
      joined = generation->result().text;
    }
    joined += generate(*session, text(""), greedy(20)).result->text;
    EXPECT_EQ(joined, "\xF0\x9F\x98\x80") << stop_at;
  }
}

TEST(Generation, StickyCancelIsConsumedByTheNextCall) {
  World world;
  const auto session = world.session();
  session->cancel();
  const Outcome outcome = generate(*session, text("a"), greedy(5));
  EXPECT_EQ(outcome.status.code(), Code::kCancelled);
  EXPECT_EQ(session->length(), 0);
  EXPECT_EQ(world.model->forwards, 0);
  EXPECT_TRUE(generate(*session, text("a"), greedy(5)).status.ok());
}

struct Stopper {
  int32_t at;
  int calls = 0;
};

TEST(Generation, CallbackStopsAtEveryEvent) {
  World world;
  CallParams params = greedy(5);
  params.stops.ignore_eos = true;
  for (int32_t at = 0; at <= 5; ++at) {  // 5 is the done event
    const auto session = world.session();
    Stopper stopper{at};
    std::optional<GenResult> result;
    const Status status = session->generate(
        text("a"), params,
        [](void* user, const Event& event) {
          auto* const counter = static_cast<Stopper*>(user);
          EXPECT_EQ(event.index, counter->calls);
          return counter->calls++ == counter->at ? 42 : 0;
        },
        &stopper, &result);
    EXPECT_EQ(stopper.calls, at + 1);  // no further calls
    EXPECT_EQ(status.code(), Code::kCancelled);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->user_code, 42);
    EXPECT_EQ(result->finish_reason, FinishReason::kCallback);
    const size_t said = std::min<size_t>(static_cast<size_t>(at) + 1, 5);
    EXPECT_EQ(result->tokens.size(), said);
    EXPECT_EQ(session->length(), 2 + static_cast<int32_t>(said));
    const Tokens before = held(*session);
    EXPECT_EQ(generate(*session, text(""), params).result->tokens,
              fresh_continuation(world, before, 5));
  }
}

TEST(Generation, ClosingEarlyKeepsWhatWasSaid) {
  World world;
  CallParams params = greedy(20);
  params.stops.ignore_eos = true;
  const auto session = world.session();
  { const auto unused = session->open(text("abc"), params); }
  EXPECT_EQ(session->length(), 0);
  {
    auto generation = std::move(session->open(text("abc"), params)).value();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(generation->next().ok());
  }
  EXPECT_EQ(session->length(), 7 - 1);  // BOS, ab, c, three tokens
  const Tokens before = held(*session);
  EXPECT_EQ(generate(*session, text(""), params).result->tokens,
            fresh_continuation(world, before, 20));
}

}  // namespace
}  // namespace gen::generate
