// SPDX-License-Identifier: Apache-2.0
// Shared by tests that compare the outputs of sessions bit for bit: calls with tokens, over models
// of 50 tokens.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <ostream>
#include <vector>

#include "cache/state/state_file.h"
#include "generate/loop/generation.h"
#include "generate/loop/session.h"

namespace gen::generate {

using Tokens = std::vector<int32_t>;

/// The output of a call; logprobs are compared as bits.
struct Said {
  Status status = {};
  Tokens tokens = {};
  std::vector<float> logprobs = {};
  int32_t cached = -1;

  friend bool operator==(const Said& a, const Said& b) {
    return a.tokens == b.tokens && a.logprobs.size() == b.logprobs.size() &&
           std::memcmp(a.logprobs.data(), b.logprobs.data(), 4 * a.logprobs.size()) == 0;
  }
  friend std::ostream& operator<<(std::ostream& out, const Said& said) {
    return out << said.status.message() << testing::PrintToString(said.tokens)
               << testing::PrintToString(said.logprobs);
  }
};

inline std::vector<std::byte> state_of(const Session& session) {
  std::vector<std::byte> state;
  const Status status = session.save([&state](const cache::StateContents& contents) -> Status {
    GEN_ASSIGN(const size_t size, cache::state_size(contents));
    state.resize(size);
    return cache::save_state(cache::StateKind::kSession, contents, state);
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return state;
}

inline CallParams params_of(int32_t n) {
  CallParams params;
  params.stops.max_new_tokens = n;
  params.sampling.seed = 7;
  params.sampling.logprobs = 0;
  params.stops.ignore_eos = true;
  return params;
}

inline Said say(Session& session, const Tokens& prompt, int32_t n,
                const std::vector<model::AdapterChoice>& adapters = {}) {
  CallParams params = params_of(n);
  params.adapters = adapters;
  Said said;
  std::optional<GenResult> result;
  said.status = session.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  if (!result.has_value()) return said;
  said.tokens = result->tokens;
  said.logprobs = result->logprobs;
  said.cached = result->usage.prompt_cached;
  return said;
}

/// Some tokens of the model's 50, of a kind for each seed.
inline Tokens text_of(uint32_t seed, size_t n) {
  Tokens tokens(n);
  uint32_t state = seed * 2654435761U + 1;
  for (int32_t& token : tokens) {
    state = state * 1664525U + 1013904223U;
    token = static_cast<int32_t>(state >> 8) % 50;
  }
  return tokens;
}

inline Tokens join(const Tokens& a, const Tokens& b) {
  Tokens joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}

inline Tokens first(const Tokens& tokens, size_t n) {
  return Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace gen::generate
