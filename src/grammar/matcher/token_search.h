// SPDX-License-Identifier: Apache-2.0
// The fewest tokens with which a text can be finished.
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
  bool exact = false;  // else there may be a way of fewer
  int32_t first = -1;  // the first of them
};

/// A shortest text to the end, always the same from the same place, cut into as few tokens as it
/// can be: behind its first token the rest is no worse. kNoWay if it is above `max_bytes`, takes
/// more work than a mask may, or no tokens spell it. `lists` is as before afterwards.
FewestTokens shortest_text(const TokenGrammar& grammar, ReturnLists& lists,
                           std::span<const Item> items, uint64_t max_bytes);

/// Of all texts, by looking at all ways of one token, then of two, and so on, below `known` and
/// within `work` places looked at; `known` where that finds none. From nowhere behind its first
/// token are more needed than the rest.
FewestTokens fewest_tokens(const TokenGrammar& grammar, const ReturnLists& lists,
                           std::span<const Item> items, FewestTokens known, uint64_t work);

/// Puts tokens into `bits` behind which shortest_text() ends the text in `most` more; not all such
/// ones where many places would have to be looked at. False if the walk takes more work than a mask
/// may.
bool add_fitting_tokens(const TokenGrammar& grammar, ReturnLists& lists,
                        std::span<const Item> items, uint64_t most, std::span<uint64_t> bits);

}  // namespace gen::grammar
