// SPDX-License-Identifier: Apache-2.0
// Proves the decode loop: what comes out, when it ends, and what the session holds afterwards, for
// every way a call can end and at every step it can end at.
#include "generate/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "base/utf8.h"
#include "generate/session.h"
#include "support/fake_model.h"

namespace gen::generate {
namespace {

using sampling::SamplingParams;
using test::FakeCache;
using test::FakeModel;
using test::FakeTokenizer;
using Tokens = std::vector<int32_t>;
using Strings = std::vector<std::string>;

// Letters, words, and the bytes of U+00E9 and U+1F600 as pieces of their own. Ids start at 2.
const Strings kPieces{"a", "b",    "c",    "ab",   "foo",  " ba",  "r x",  "aba",
                      " ", "\xC3", "\xA9", "\xF0", "\x9F", "\x98", "\x80", "long piece"};

SamplingParams greedy(int32_t max_new_tokens) {
  SamplingParams params;
  params.temperature = 0.0;
  params.max_new_tokens = max_new_tokens;
  return params;
}

class World {
 public:
  explicit World(int32_t context = 64, int32_t prefill_chunk = 4, Strings pieces = kPieces) {
    tokenizer = std::make_shared<FakeTokenizer>(std::move(pieces));
    model = std::make_shared<FakeModel>(tokenizer->vocab_size(), context);
    options.prefill_chunk = prefill_chunk;
    options.cache_factory = [this](std::span<const cache::LayerShape>,
                                   int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
      auto made = std::make_unique<FakeCache>(capacity, cache_can_truncate);
      cache = made.get();
      return std::unique_ptr<cache::KvCache>(std::move(made));
    };
  }
  std::shared_ptr<Session> session() {
    if (generator == nullptr) {
      generator = std::move(Generator::create(model, tokenizer, options)).value();
    }
    return std::move(generator->new_session()).value();
  }
  // From now on the model says these tokens, one for each position from `start` on, then EOS.
  void script(int32_t start, const Tokens& said) {
    model->next = [start, said](std::span<const int32_t> history) {
      const auto at = static_cast<int64_t>(history.size()) - start;
      return at >= 0 && at < static_cast<int64_t>(said.size()) ? said[static_cast<size_t>(at)]
                                                               : FakeTokenizer::kEos;
    };
  }
  Tokens ids(const Strings& pieces) const {
    Tokens found;
    const auto& all = tokenizer->spec().tokens;
    for (const std::string& piece : pieces) {
      found.push_back(static_cast<int32_t>(std::find(all.begin(), all.end(), piece) - all.begin()));
    }
    return found;
  }

  std::shared_ptr<FakeTokenizer> tokenizer;
  std::shared_ptr<FakeModel> model;
  GeneratorOptions options;
  std::shared_ptr<const Generator> generator;
  FakeCache* cache = nullptr;  // of the last session
  bool cache_can_truncate = true;
};

struct Outcome {
  Status status;
  std::optional<GenResult> result;
  Strings pieces;  // texts of the events that are not empty
  int done_events = 0;
};

int32_t record(void* user, const Event& event) {
  auto* const outcome = static_cast<Outcome*>(user);
  EXPECT_EQ(outcome->done_events, 0);
  EXPECT_TRUE(utf8_valid(event.text));
  if (!event.text.empty()) outcome->pieces.emplace_back(event.text);
  if (event.done) ++outcome->done_events;
  return 0;
}

Outcome generate(Session& session, const Prompt& prompt, const SamplingParams& params) {
  Outcome outcome;
  outcome.status = session.generate(prompt, params, record, &outcome, &outcome.result);
  if (outcome.result.has_value()) {
    EXPECT_EQ(outcome.done_events, 1);
    std::string joined;
    for (const std::string& piece : outcome.pieces) joined += piece;
    EXPECT_EQ(joined, outcome.result->text);
    EXPECT_EQ(outcome.result->logprobs.size(),
              params.logprobs < 0 ? 0 : outcome.result->tokens.size());
    EXPECT_EQ(outcome.result->usage.completion,
              static_cast<int32_t>(outcome.result->tokens.size()));
    EXPECT_EQ(outcome.result->status.code(), outcome.status.code());
  }
  return outcome;
}

Prompt text(std::string_view prompt) { return {.text = prompt, .tokens = {}}; }
Prompt ids(std::span<const int32_t> tokens) { return {.text = {}, .tokens = tokens}; }

Tokens held(Session& session) { return std::move(session.tokens()).value(); }

// The cache must hold exactly a prefix of the session's tokens.
void expect_consistent(const World& world, Session& session) {
  const Tokens tokens = held(session);
  const auto entries = world.cache->committed();
  ASSERT_LE(entries.size(), tokens.size());
  EXPECT_TRUE(std::equal(entries.begin(), entries.end(), tokens.begin()));
  EXPECT_EQ(session.length(), static_cast<int32_t>(tokens.size()));
}

// What a fresh session says after these tokens: the oracle for "goes on as if nothing happened".
Tokens fresh_continuation(World& world, const Tokens& tokens, int32_t n) {
  FakeCache* const kept = world.cache;
  const auto session = world.session();
  SamplingParams params = greedy(n);
  params.ignore_eos = true;
  Tokens said = generate(*session, ids(tokens), params).result->tokens;
  world.cache = kept;
  return said;
}

TEST(Generation, ExamplesOfHoldingBack) {
  const auto run_script = [](const Strings& said, const std::string& stop) {
    World world;
    const auto session = world.session();
    world.script(2, world.ids(said));
    SamplingParams params = greedy(20);
    params.stop_strings = {stop};
    return generate(*session, text("a"), params);
  };
  Outcome outcome = run_script({"foo", " ba", "r x"}, "bar");
  EXPECT_EQ(outcome.pieces, (Strings{"foo", " "}));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopString);
  EXPECT_EQ(outcome.result->usage.completion, 3);
  outcome = run_script({"ab", "aba", "c"}, "abac");
  EXPECT_EQ(outcome.pieces, (Strings{"ab"}));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopString);
  outcome = run_script({"ab", "aba"}, "abac");
  EXPECT_EQ(outcome.pieces, (Strings{"ab", "aba"}));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
}

TEST(Generation, PiecesAreWholeCharacters) {
  World world;
  const auto session = world.session();
  world.script(2, world.ids({"\xF0", "\x9F", "\x98", "\x80", "\xC3", "a", "\xC3", "\xA9", "\xF0"}));
  const Outcome outcome = generate(*session, text("a"), greedy(20));
  EXPECT_EQ(outcome.pieces, (Strings{"\xF0\x9F\x98\x80",
                                     "\xEF\xBF\xBD"
                                     "a",
                                     "\xC3\xA9", "\xEF\xBF\xBD"}));
}

TEST(Generation, StopTokenStaysInTheSessionNotInTheText) {
  World world;
  const auto session = world.session();
  world.script(2, world.ids({"a", "b"}));
  const Outcome outcome = generate(*session, text("c"), greedy(20));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.result->text, "ab");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  EXPECT_EQ(outcome.result->usage.prompt, 2);  // BOS and "c"
  EXPECT_EQ(outcome.result->usage.completion, 2);
  EXPECT_EQ(held(*session), (Tokens{0, 4, 2, 3, 1}));
  expect_consistent(world, *session);
}

TEST(Generation, StopTokensOfTheCallerAndIgnoreEos) {
  World world;
  world.script(2, {2, 1, 3, 4});
  SamplingParams params = greedy(20);
  params.ignore_eos = true;
  params.stop_tokens = {4};
  auto session = world.session();
  const Outcome outcome = generate(*session, text("a"), params);
  EXPECT_EQ(outcome.result->tokens, (Tokens{2, 1, 3}));
  EXPECT_EQ(outcome.result->text, "ab");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  params.ignore_eos = false;
  session = world.session();
  EXPECT_EQ(generate(*session, text("a"), params).result->tokens, (Tokens{2}));
}

TEST(Generation, TheDoneEventNamesTheStopToken) {
  World world;
  world.script(2, {2});
  const auto session = world.session();
  auto generation = std::move(session->open(text("a"), greedy(5))).value();
  const Event first = *generation->next().value();
  EXPECT_EQ(first.token, 2);
  EXPECT_FALSE(first.done);
  EXPECT_FALSE(generation->ended());
  const Event* const last = generation->next().value();
  EXPECT_TRUE(last->done);
  EXPECT_TRUE(generation->ended());
  EXPECT_EQ(last->token, 1);
  EXPECT_EQ(last->index, 1);
  EXPECT_EQ(last->finish_reason, FinishReason::kStopToken);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(generation->next().value(), nullptr);
}

TEST(Generation, LengthAndContext) {
  World world(10);
  world.script(2, Tokens(50, 2));
  auto session = world.session();
  Outcome outcome = generate(*session, text("a"), greedy(8));
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kLength);  // both at once: length
  EXPECT_EQ(outcome.result->tokens.size(), 8U);
  session = world.session();
  outcome = generate(*session, text("a"), greedy(9));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kContextFull);
  EXPECT_EQ(outcome.result->tokens.size(), 8U);
  EXPECT_EQ(session->length(), 10);
  // Going on is legal and ends at once.
  outcome = generate(*session, text(""), greedy(9));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kContextFull);
  EXPECT_TRUE(outcome.result->tokens.empty());
}

TEST(Generation, PromptsThatFitExactlyOrNot) {
  World world(10);
  const auto session = world.session();
  const Outcome outcome = generate(*session, text("aaaaaaaaaa"), greedy(3));  // 10 and BOS
  EXPECT_EQ(outcome.status.code(), Code::kContextFull);
  EXPECT_STREQ(outcome.status.message(), "prompt of 11 tokens after 0 held exceeds context of 10");
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
  SamplingParams params = greedy(3);
  params.stop_tokens = {18};
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
    SamplingParams params = greedy(20);
    params.ignore_eos = true;
    const auto one = world.session();
    const Tokens at_once = generate(*one, text("abcab foo"), params).result->tokens;
    if (whole.empty()) whole = at_once;
    EXPECT_EQ(at_once, whole) << chunk;
    const auto two = world.session();
    params.max_new_tokens = 7;
    Tokens parts = generate(*two, text("abcab foo"), params).result->tokens;
    params.max_new_tokens = 13;
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
  SamplingParams params;
  params.max_new_tokens = 30;
  params.ignore_eos = true;
  std::vector<Tokens> texts;
  for (const uint64_t seed : {1U, 1U, 2U}) {
    params.seed = seed;
    const auto session = world.session();
    texts.push_back(generate(*session, text("a"), params).result->tokens);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

// The oracle draws by hand from the fake model's logits.
TEST(Generation, DrawsWithSeedAndStep) {
  World world;
  SamplingParams params;
  params.max_new_tokens = 12;
  params.seed = 5;
  params.ignore_eos = true;
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
  SamplingParams params = greedy(4);
  params.logprobs = 3;
  params.ignore_eos = true;
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
    EXPECT_EQ(result.top_logprobs[3 * i].token, result.tokens[i]);  // greedy takes the best
    EXPECT_EQ(result.top_logprobs[3 * i].logprob, result.logprobs[i]);
    EXPECT_GE(result.top_logprobs[3 * i].logprob, result.top_logprobs[3 * i + 1].logprob);
    history.push_back(result.tokens[i]);
  }
}

// Cancel before each forward pass, from within it, and from each callback.
TEST(Generation, CancelAtEveryStep) {
  World world(64, 2);
  const Tokens prompt{0, 2, 3, 4, 5, 6, 7};  // four chunks
  SamplingParams params = greedy(6);
  params.ignore_eos = true;
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
  SamplingParams params = greedy(20);
  params.ignore_eos = true;
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
  SamplingParams params = greedy(5);
  params.ignore_eos = true;
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
        SamplingParams params = greedy(3);
        params.ignore_eos = true;
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
        params.max_new_tokens = 8;
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

TEST(Generation, ClosingEarlyKeepsWhatWasSaid) {
  World world;
  SamplingParams params = greedy(20);
  params.ignore_eos = true;
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
  SamplingParams params = greedy(3);
  params.ignore_eos = true;
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

// Random scripts over pieces that split characters and stops; the whole text is computed at once.
TEST(Generation, NoByteOfAStopStringEverComesOut) {
  const Strings pieces{"a",
                       "b",
                       "ab",
                       "ba",
                       "\xC3",
                       "\xA9",
                       "\xC3\xA9",
                       "a\xC3",
                       "\xA9"
                       "b",
                       ""};
  const Strings alphabet{"a", "b", "\xC3\xA9"};
  int stopped = 0;
  for (uint64_t round = 0; round < 1500; ++round) {
    uint64_t counter = 0;
    const auto below = [&](size_t n) {
      return static_cast<size_t>(uniform_double(round, 2, counter++) * static_cast<double>(n));
    };
    World world(64, 8, pieces);
    Tokens said;
    for (size_t i = 1 + below(16); i-- > 0;) said.push_back(static_cast<int32_t>(2 + below(10)));
    world.script(1, said);
    SamplingParams params = greedy(static_cast<int32_t>(said.size()));
    for (size_t i = below(4); i-- > 0;) {
      std::string stop;
      for (size_t n = below(5); n-- > 0;) stop += alphabet[below(3)];
      params.stop_strings.push_back(stop);
    }
    const auto session = world.session();
    const Tokens prompt{0};
    const Outcome outcome = generate(*session, ids(prompt), params);

    // Token by token, searching all text decoded so far.
    std::string expected;
    size_t used = 0;
    bool hit = false;
    while (used < said.size() && !hit) {
      ++used;
      expected.clear();
      tokenizer::StreamDecoder decoder(*world.tokenizer, 0);
      for (size_t i = 0; i < used; ++i) ASSERT_TRUE(decoder.feed(said[i], &expected).ok());
      size_t first = std::string::npos;
      for (const std::string& stop : params.stop_strings) {
        if (!stop.empty()) first = std::min(first, expected.find(stop));
      }
      hit = first != std::string::npos;
      if (hit) {
        expected.resize(first);
      } else {
        decoder.flush(&expected);
      }
    }
    ASSERT_EQ(outcome.result->text, expected) << round;
    ASSERT_EQ(outcome.result->tokens.size(), used) << round;
    ASSERT_EQ(outcome.result->finish_reason,
              hit ? FinishReason::kStopString : FinishReason::kLength);
    ASSERT_EQ(session->length(), static_cast<int32_t>(1 + used));
    stopped += hit ? 1 : 0;
  }
  EXPECT_GT(stopped, 300);
}

}  // namespace
}  // namespace gen::generate
