// SPDX-License-Identifier: Apache-2.0
// Proves the decode loop: prompts, draws, failures at every step and what the session holds
// afterwards. Ends of the text are in generation_stop_test.cpp, cancels in
// generation_cancel_test.cpp.
#include "generate/loop/generation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <new>

#include "generate/fake_world.h"
#include "generate/loop/generator.h"

namespace gen::generate {
namespace {

TEST(Generation, PromptsThatFitExactlyOrNot) {
  World world(10);
  const auto session = world.session();
  const Outcome outcome = generate(*session, text("aaaaaaaaaa"), greedy(3));  // 10 and BOS
  EXPECT_EQ(outcome.status.code(), Code::kContextFull);
  EXPECT_STREQ(outcome.status.message(), "the prompt has 11 tokens, the context only 10");
  EXPECT_FALSE(outcome.result.has_value());
  EXPECT_EQ(world.model->forwards, 0);
  EXPECT_EQ(session->length(), 0);
  const Outcome full = generate(*session, text("aaaaaaaaa"), greedy(3));
  EXPECT_EQ(full.result->finish_reason, FinishReason::kContextFull);
  EXPECT_EQ(session->length(), 10);
}

TEST(Generation, RefusedPromptsChangeNothing) {
  World world;
  const auto session = world.session();
  EXPECT_EQ(generate(*session, text(""), greedy(3)).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(generate(*session, text("a?"), greedy(3)).status.code(), Code::kTokenizer);
  const Tokens bad{2, 999};
  const Outcome outcome = generate(*session, ids(bad), greedy(3));
  EXPECT_EQ(outcome.status.code(), Code::kOutOfRange);
  EXPECT_STREQ(outcome.status.message(), "token 999 outside vocabulary of 18");
  CallParams params = greedy(3);
  params.stops.tokens = {18};
  EXPECT_EQ(generate(*session, text("a"), params).status.code(), Code::kOutOfRange);
  EXPECT_EQ(session->length(), 0);
  session->cancel();  // a refused call does not consume it
  EXPECT_EQ(generate(*session, text(""), greedy(3)).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(generate(*session, text("a"), greedy(3)).status.code(), Code::kCancelled);
  EXPECT_TRUE(generate(*session, text("a"), greedy(3)).status.ok());
}

TEST(Generation, SpecialTextsOnlyWhenAsked) {
  World world(64, 4, {"<", "s", ">", "/"});
  const auto session = world.session();
  ASSERT_TRUE(session->append({.text = "<s>", .tokens = {}}).ok());
  EXPECT_EQ(held(*session), (Tokens{0, 2, 3, 4}));
  ASSERT_TRUE(session->append({.text = "</s>", .tokens = {}, .parse_special = true}).ok());
  EXPECT_EQ(held(*session), (Tokens{0, 2, 3, 4, 1}));
}

// Two calls, the second with no prompt, say what one call says; whatever the chunks were.
TEST(Generation, GoingOnEqualsOneCall) {
  Tokens whole;
  for (const int32_t chunk : {1, 2, 3, 5, 64}) {
    World world(64, chunk);
    CallParams params = greedy(20);
    params.stops.ignore_eos = true;
    const auto one = world.session();
    const Tokens at_once = generate(*one, text("abcab foo"), params).result->tokens;
    if (whole.empty()) whole = at_once;
    EXPECT_EQ(at_once, whole) << chunk;
    const auto two = world.session();
    params.stops.max_new_tokens = 7;
    Tokens parts = generate(*two, text("abcab foo"), params).result->tokens;
    params.stops.max_new_tokens = 13;
    const Outcome rest = generate(*two, text(""), params);
    EXPECT_EQ(rest.result->usage.prompt, 0);
    parts.insert(parts.end(), rest.result->tokens.begin(), rest.result->tokens.end());
    EXPECT_EQ(parts, whole) << chunk;
    expect_consistent(world, *two);
  }
}

TEST(Generation, BosOnlyWhenEmpty) {
  World world;
  const auto session = world.session();
  world.script(0, Tokens(60, 3));
  ASSERT_TRUE(generate(*session, text("a"), greedy(2)).status.ok());
  ASSERT_TRUE(generate(*session, text("a"), greedy(1)).status.ok());
  EXPECT_EQ(held(*session), (Tokens{0, 2, 3, 3, 2, 3}));
}

TEST(Generation, SeedsDecide) {
  World world;
  CallParams params;
  params.stops.max_new_tokens = 30;
  params.stops.ignore_eos = true;
  std::vector<Tokens> texts;
  for (const uint64_t seed : {1U, 1U, 2U}) {
    params.sampling.seed = seed;
    const auto session = world.session();
    texts.push_back(generate(*session, text("a"), params).result->tokens);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

// The oracle draws by hand from the fake model's logits.
TEST(Generation, DrawsWithSeedAndStep) {
  World world;
  CallParams params;
  params.stops.max_new_tokens = 12;
  params.sampling.seed = 5;
  params.stops.ignore_eos = true;
  const auto session = world.session();
  const Tokens said = generate(*session, text("a"), params).result->tokens;
  Tokens history{0, 2};
  std::vector<float> logits(static_cast<size_t>(world.tokenizer->vocab_size()));
  for (uint64_t step = 0; step < said.size(); ++step) {
    world.model->write_logits(history, logits.data());
    double total = 0;
    for (const float x : logits) total += std::exp(static_cast<double>(x));
    double mass = 0;
    int32_t expected = -1;
    for (size_t i = 0; i < logits.size() && expected < 0; ++i) {
      mass += std::exp(static_cast<double>(logits[i])) / total;
      if (mass > uniform_double(5, 0, step)) expected = static_cast<int32_t>(i);
    }
    ASSERT_EQ(said[step], expected) << step;
    history.push_back(expected);
  }
}

TEST(Generation, Logprobs) {
  World world;
  CallParams params = greedy(4);
  params.sampling.logprobs = 3;
  params.stops.ignore_eos = true;
  const auto session = world.session();
  const Outcome outcome = generate(*session, text("a"), params);
  const GenResult& result = *outcome.result;
  EXPECT_EQ(result.top_count, 3);
  ASSERT_EQ(result.top_logprobs.size(), 12U);
  Tokens history{0, 2};
  std::vector<float> logits(static_cast<size_t>(world.tokenizer->vocab_size()));
  for (size_t i = 0; i < result.tokens.size(); ++i) {
    world.model->write_logits(history, logits.data());
    double total = 0;
    for (const float x : logits) total += std::exp(static_cast<double>(x));
    const auto token = static_cast<size_t>(result.tokens[i]);
    EXPECT_NEAR(result.logprobs[i], static_cast<double>(logits[token]) - std::log(total), 1e-6);
    EXPECT_EQ(result.top_ids[3 * i], result.tokens[i]);  // greedy takes the best
    EXPECT_EQ(result.top_logprobs[3 * i], result.logprobs[i]);
    EXPECT_GE(result.top_logprobs[3 * i], result.top_logprobs[3 * i + 1]);
    history.push_back(result.tokens[i]);
  }
}

// Every kind of failure, at every pass: the partial result comes, the session is as before, and
// what it says next is what a session without the failure says.
TEST(Generation, FailuresAtEveryStepLeaveTheSessionAsItWas) {
  enum Kind { kModelFails, kModelThrows, kCacheRefuses, kNan };
  for (const Kind kind : {kModelFails, kModelThrows, kCacheRefuses, kNan}) {
    for (const bool can_truncate : {true, false}) {
      for (int step = 0; step < 7; ++step) {
        World world(64, 2);
        world.cache_can_truncate = can_truncate;
        const auto session = world.session();
        CallParams params = greedy(3);
        params.stops.ignore_eos = true;
        const Tokens first{0, 2, 3};
        ASSERT_TRUE(generate(*session, ids(first), params).status.ok());
        const Tokens before = held(*session);

        int countdown = step;
        const auto due = [&countdown] { return countdown-- == 0; };
        if (kind == kModelFails) {
          world.model->before_forward = [&](const graph::Batch&) {
            return due() ? error(Code::kModel, "injected") : Status();
          };
        } else if (kind == kModelThrows) {
          world.model->before_forward = [&](const graph::Batch&) -> Status {
            if (due()) throw std::bad_alloc();
            return {};
          };
        } else if (kind == kCacheRefuses) {
          world.cache->plans_until_failure = step;
        } else {
          world.model->spoil_logits = [&](std::span<const int32_t>, float* logits) {
            if (due()) logits[7] = std::nanf("");
          };
        }
        const Tokens second{4, 5, 6};  // with the pending token two chunks, then decoding
        params.stops.max_new_tokens = 8;
        const Outcome outcome = generate(*session, ids(second), params);
        world.model->before_forward = nullptr;
        world.model->spoil_logits = nullptr;
        const Code expected = kind == kModelThrows    ? Code::kOutOfMemory
                              : kind == kCacheRefuses ? Code::kCacheFull
                                                      : Code::kModel;
        ASSERT_EQ(outcome.status.code(), expected);
        ASSERT_TRUE(outcome.result.has_value());
        EXPECT_EQ(outcome.result->finish_reason, FinishReason::kError);
        Tokens all_before = before;
        all_before.insert(all_before.end(), second.begin(), second.end());
        const Tokens said = fresh_continuation(world, all_before, 8);
        const size_t partial = outcome.result->tokens.size();
        EXPECT_EQ(partial, static_cast<size_t>(kind == kNan ? step : std::max(0, step - 1)));
        EXPECT_TRUE(
            std::equal(outcome.result->tokens.begin(), outcome.result->tokens.end(), said.begin()));
        EXPECT_EQ(held(*session), before);
        EXPECT_EQ(generate(*session, ids(second), params).result->tokens, said);
        expect_consistent(world, *session);
      }
    }
  }
}

TEST(Generation, NanNamesRowAndToken) {
  World world;
  const auto session = world.session();
  world.model->spoil_logits = [](std::span<const int32_t>, float* logits) {
    logits[3] = std::numeric_limits<float>::infinity();
  };
  const Outcome outcome = generate(*session, text("ab"), greedy(3));
  EXPECT_STREQ(outcome.status.message(), "row 1, token 3: logit is +inf");
}

TEST(Generation, FailureInPullFormComesAfterTheDoneEvent) {
  World world;
  const auto session = world.session();
  world.model->before_forward = [](const graph::Batch&) { return error(Code::kDevice, "gone"); };
  auto generation = std::move(session->open(text("a"), greedy(3))).value();
  const auto done = generation->next();
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done.value()->done);
  EXPECT_EQ(done.value()->finish_reason, FinishReason::kError);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(generation->next().status().code(), Code::kDevice);
  EXPECT_EQ(generation->result().status.code(), Code::kDevice);
}

TEST(Generation, OpenMeansBusyUntilClosed) {
  World world;
  const auto session = world.session();
  auto generation = std::move(session->open(text("a"), greedy(1))).value();
  const auto expect_busy = [&] {
    EXPECT_EQ(session->open(text("a"), greedy(1)).status().code(), Code::kBusy);
    EXPECT_EQ(generate(*session, text("a"), greedy(1)).status.code(), Code::kBusy);
    EXPECT_EQ(session->append(text("a")).code(), Code::kBusy);
    EXPECT_EQ(session->truncate(0).code(), Code::kBusy);
    EXPECT_EQ(session->reset().code(), Code::kBusy);
    EXPECT_EQ(session->tokens().status().code(), Code::kBusy);
    std::vector<float> scores;
    EXPECT_EQ(session->score(text("a"), &scores, nullptr).code(), Code::kBusy);
    EXPECT_LE(session->length(), 3);
  };
  expect_busy();
  while (!generation->ended()) {
    ASSERT_TRUE(generation->next().ok());
    expect_busy();
  }
  generation.reset();
  EXPECT_TRUE(session->append(text("a")).ok());
}

TEST(Generation, OutlivesEveryHandle) {
  std::unique_ptr<Generation> generation;
  {
    World world;
    auto session = world.session();
    generation = std::move(session->open(text("a"), greedy(4))).value();
  }
  while (!generation->ended()) ASSERT_TRUE(generation->next().ok());
  EXPECT_TRUE(generation->result().status.ok());
}

TEST(Generation, ProgressAndTimings) {
  World world(64, 2);
  const auto session = world.session();
  std::vector<float> seen;
  world.model->before_forward = [&](const graph::Batch&) {
    seen.push_back(session->progress());
    return Status();
  };
  CallParams params = greedy(3);
  params.stops.ignore_eos = true;
  const Tokens prompt{0, 2, 3, 4, 5, 6, 7, 8};
  const Outcome outcome = generate(*session, ids(prompt), params);
  EXPECT_EQ(seen, (std::vector<float>{0.0F, 0.25F, 0.5F, 0.75F, 1.0F, 1.0F}));
  const Timings& timings = outcome.result->timings;
  EXPECT_GT(timings.prefill, 0.0);
  EXPECT_GE(timings.first_token, timings.prefill);
  EXPECT_GT(timings.decode, 0.0);
}

TEST(Generation, WithoutATokenizer) {
  World world;
  world.generator = std::move(Generator::create(world.model, nullptr, world.options)).value();
  const auto session = world.session();
  EXPECT_EQ(generate(*session, text("a"), greedy(3)).status.code(), Code::kTokenizer);
  const Tokens prompt{2, 3};
  const Outcome outcome = generate(*session, ids(prompt), greedy(3));
  EXPECT_EQ(outcome.result->tokens.size(), 3U);
  EXPECT_EQ(outcome.result->text, "");
}

// Penalised by 100, what was said cannot be said again: with penalize_prompt this holds for all the
// session has, else for the tokens of the call alone.
TEST(Generation, PenaltiesCountThePromptIfAsked) {
  for (const bool all : {false, true}) {
    World world;
    const auto session = world.session();
    world.model->next = [&](std::span<const int32_t> history) { return history[1]; };
    CallParams params = greedy(6);
    params.stops.ignore_eos = true;
    params.sampling.presence_penalty = 100;
    params.sampling.penalize_prompt = all;
    const Tokens prompt{0, 4, 5};
    const Tokens said = generate(*session, ids(prompt), params).result->tokens;
    ASSERT_EQ(said.size(), 6U);
    const Tokens again = generate(*session, text(""), params).result->tokens;
    Tokens before = all ? prompt : Tokens();
    for (const int32_t token : said) {
      EXPECT_EQ(std::count(before.begin(), before.end(), token), 0) << all;
      before.push_back(token);
    }
    EXPECT_EQ(said[0] == 4, !all);  // what the model wants, if it may
    EXPECT_EQ(again[0] == 4, !all);
    for (const int32_t token : again) {
      EXPECT_TRUE(!all || std::count(before.begin(), before.end(), token) == 0);
      before.push_back(token);
    }
  }
}

}  // namespace
}  // namespace gen::generate
