// SPDX-License-Identifier: Apache-2.0
// The minimum number of tokens that complete a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/machine/recogniser.h"
#include "grammar/mask/token_grammar.h"

namespace gen::grammar {

inline constexpr uint64_t kNoWay = UINT64_MAX;

struct FewestTokens {
  uint64_t tokens = kNoWay;
  bool exact = false;  // otherwise fewer may suffice
  int32_t first = -1;  // the first of them
};

/// A shortest completion, deterministic, split into as few tokens as possible: after its first
/// token the rest is no worse. kNoWay if it exceeds `max_bytes`, takes more work than a mask may,
/// or cannot be spelled by tokens. `lists` is unchanged afterwards.
FewestTokens shortest_text(const TokenGrammar& grammar, ReturnLists& lists,
                           std::span<const Item> items, uint64_t max_bytes);

/// The minimum over all texts: examines all sequences of one token, then of two, and so on, fewer
/// than `known` and within `work` visited trie nodes; `known` if none is found. After its first
/// token, never more are needed than the rest.
FewestTokens fewest_tokens(const TokenGrammar& grammar, const ReturnLists& lists,
                           std::span<const Item> items, FewestTokens known, uint64_t work);

/// Adds tokens to `bits` after which shortest_text() completes the text in `most` more; not all of
/// them where many trie nodes would have to be examined. False if the walk takes more work than a
/// mask may.
bool add_fitting_tokens(const TokenGrammar& grammar, ReturnLists& lists,
                        std::span<const Item> items, uint64_t most, std::span<uint64_t> bits);

}  // namespace gen::grammar
