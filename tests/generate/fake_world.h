// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the decode loop: a fake model with its tokenizer and cache, scripted if a
// test needs certain words, and calls that check the invariants of every call.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "support/fake_model.h"

namespace gen::generate {

using test::FakeCache;
using test::FakeModel;
using test::FakeTokenizer;
using Tokens = std::vector<int32_t>;
using Strings = std::vector<std::string>;

// Letters, words, and the bytes of U+00E9 and U+1F600 as pieces of their own. Ids start at 2.
inline const Strings kPieces{"a", "b",    "c",    "ab",   "foo",  " ba",  "r x",  "aba",
                             " ", "\xC3", "\xA9", "\xF0", "\x9F", "\x98", "\x80", "long piece"};

inline CallParams greedy(int32_t max_new_tokens) {
  CallParams params;
  params.sampling.temperature = 0.0;
  params.stops.max_new_tokens = max_new_tokens;
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
      made->can_shift = cache_can_shift;
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
  // From now on the model generates these tokens, one for each position from `start` on, then EOS.
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
  bool cache_can_shift = false;
};

struct Outcome {
  Status status;
  std::optional<GenResult> result;
  Strings pieces;  // texts of the events that are not empty
  int done_events = 0;
};

inline int32_t record(void* user, const Event& event) {
  auto* const outcome = static_cast<Outcome*>(user);
  EXPECT_EQ(outcome->done_events, 0);
  EXPECT_TRUE(utf8_valid(event.text));
  if (!event.text.empty()) outcome->pieces.emplace_back(event.text);
  if (event.done) ++outcome->done_events;
  return 0;
}

inline Outcome generate(Session& session, const Prompt& prompt, const CallParams& params) {
  Outcome outcome;
  outcome.status = session.generate(prompt, params, record, &outcome, &outcome.result);
  if (outcome.result.has_value()) {
    EXPECT_EQ(outcome.done_events, 1);
    std::string joined;
    for (const std::string& piece : outcome.pieces) joined += piece;
    EXPECT_EQ(joined, outcome.result->text);
    EXPECT_EQ(outcome.result->logprobs.size(),
              params.sampling.logprobs < 0 ? 0 : outcome.result->tokens.size());
    EXPECT_EQ(outcome.result->usage.completion,
              static_cast<int32_t>(outcome.result->tokens.size()));
    EXPECT_EQ(outcome.result->status.code(), outcome.status.code());
  }
  return outcome;
}

inline Prompt text(std::string_view prompt) { return {.text = prompt, .tokens = {}}; }
inline Prompt ids(std::span<const int32_t> tokens) { return {.text = {}, .tokens = tokens}; }

inline Tokens held(Session& session) { return std::move(session.tokens()).value(); }

// The cache must hold exactly a prefix of the session's tokens.
inline void expect_consistent(const World& world, Session& session) {
  const Tokens tokens = held(session);
  const auto entries = world.cache->committed();
  ASSERT_LE(entries.size(), tokens.size());
  EXPECT_TRUE(std::equal(entries.begin(), entries.end(), tokens.begin()));
  EXPECT_EQ(session.length(), static_cast<int32_t>(tokens.size()));
}

// The output of a fresh session after these tokens: the oracle for calls that must have no effect.
inline Tokens fresh_continuation(World& world, const Tokens& tokens, int32_t n) {
  FakeCache* const kept = world.cache;
  const auto session = world.session();
  CallParams params = greedy(n);
  params.stops.ignore_eos = true;
  Tokens said = generate(*session, ids(tokens), params).result->tokens;
  world.cache = kept;
  return said;
}

}  // namespace gen::generate
