// SPDX-License-Identifier: Apache-2.0
// A short random walk over a grammar's tokens that checks the contract of matchers at each step;
// for the fuzz targets of grammars.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar::fuzz {

inline void require(bool condition) {
  if (!condition) __builtin_trap();
}

// A hostile grammar of this size is still walked in a fraction of a second.
inline GrammarLimits small() {
  GrammarLimits limits;
  limits.edges = 50'000;
  limits.automata.states = 500;
  limits.automata.work = 500'000;
  limits.masks.items = 500;
  limits.masks.work = 20'000;
  return limits;
}

inline bool mask_of(const Matcher& matcher, std::vector<uint64_t>* mask) {
  mask->assign(matcher.grammar().vocabulary().words(), 0);
  const gen::Status status = matcher.mask(*mask);
  require(status.ok() || status.code() == gen::Code::kGrammar);
  return status.ok();
}

// Looking ahead gives the same answer as moving on.
inline void look_ahead(Matcher& matcher, const std::vector<uint64_t>& mask, unsigned char choice) {
  const Vocabulary& vocabulary = matcher.grammar().vocabulary();
  const FewestTokens fewest = matcher.min_tokens(5'000);
  require((fewest.tokens == 0) == matcher.is_complete());
  std::vector<uint64_t> within(vocabulary.words());
  const auto fits = matcher.mask_within(choice % 8, within);
  if (!fits.ok()) return;
  for (size_t word = 0; word < mask.size(); ++word) require((within[word] & ~mask[word]) == 0);
  if (fewest.exact && fewest.tokens <= choice % 8) require(fits.value());
  const int32_t first = choice % vocabulary.size();
  const int32_t second = choice / 7 % vocabulary.size();
  const std::vector<int32_t> parents = {-1, 0, -1};
  const std::vector<int32_t> tokens = {first, second, second};
  std::vector<uint64_t> rows(3 * vocabulary.words());
  if (matcher.masks_of_tree(parents, tokens, rows).ok()) {
    Matcher other = matcher.fork();
    std::vector<uint64_t> expected(vocabulary.words(), 0);
    const auto taken = other.accept_token(first);
    require(taken.ok());
    if (taken.value() && !mask_of(other, &expected)) return;
    for (size_t word = 0; word < expected.size(); ++word) require(rows[word] == expected[word]);
  }
  const auto forced = matcher.forced_tokens(3);
  if (forced.ok()) {
    Matcher other = matcher.fork();
    for (const int32_t token : forced.value()) require(other.accept_token(token).value());
  }
}

inline void walk(Matcher& matcher, std::string_view choices) {
  const Vocabulary& vocabulary = matcher.grammar().vocabulary();
  std::vector<std::vector<uint64_t>> masks(1);
  if (!mask_of(matcher, &masks[0])) return;
  for (const char choice : choices.substr(0, 12)) {
    std::vector<int32_t> open;
    for (int32_t token = 0; token < vocabulary.size(); ++token) {
      const bool allowed = test::has(masks.back(), token);
      Matcher other = matcher.fork();
      const auto taken = other.accept_token(token);
      require(!taken.ok() || taken.value() == allowed);
      if (allowed && !vocabulary.is_end(token)) open.push_back(token);
      if (vocabulary.is_end(token)) require(allowed == matcher.is_complete());
    }
    look_ahead(matcher, masks.back(), static_cast<unsigned char>(choice));
    require(!matcher.is_finished() || open.empty());
    if (open.empty()) break;
    const auto taken = matcher.accept_token(open[static_cast<unsigned char>(choice) % open.size()]);
    if (!taken.ok()) break;
    require(taken.value());
    require(matcher.is_complete() || matcher.min_bytes() > 0 ||
            !matcher.grammar().machines().terms.empty());
    masks.emplace_back();
    if (!mask_of(matcher, &masks.back())) return;
  }
  std::vector<uint64_t> mask;
  while (matcher.accepted() > 0) {
    require(matcher.rollback(1).ok());
    if (!mask_of(matcher, &mask)) return;
    require(mask == masks[matcher.accepted()]);
  }
}

}  // namespace gen::grammar::fuzz
