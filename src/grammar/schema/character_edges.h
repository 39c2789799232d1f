// SPDX-License-Identifier: Apache-2.0
// Transitions on ranges of characters, for automata that write characters as digits or bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gen::grammar {

/// A transition on a range of characters.
struct CharacterEdge {
  uint32_t low;
  uint32_t high;
  uint32_t target;
  auto operator<=>(const CharacterEdge&) const = default;
};
using CharacterEdges = std::vector<CharacterEdge>;  // sorted, disjoint

/// Fills `part` with the transitions of `edges` on [low, high], relative to `low`; adjacent ranges
/// with the same target are merged.
inline void slice(const CharacterEdges& edges, uint32_t low, uint32_t high, CharacterEdges* part) {
  part->clear();
  for (const CharacterEdge& range : edges) {
    if (range.high < low || range.low > high) continue;
    const CharacterEdge one = {std::max(range.low, low) - low, std::min(range.high, high) - low,
                               range.target};
    if (!part->empty() && part->back().target == one.target && part->back().high + 1 == one.low) {
      part->back().high = one.high;
    } else {
      part->push_back(one);
    }
  }
}

}  // namespace gen::grammar
