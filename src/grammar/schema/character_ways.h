// SPDX-License-Identifier: Apache-2.0
// Transitions on ranges of characters, for automata that write characters as digits or bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gen::grammar {

/// A transition on a range of characters.
struct Way {
  uint32_t low;
  uint32_t high;
  uint32_t target;
  auto operator<=>(const Way&) const = default;
};
using Ways = std::vector<Way>;  // sorted, disjoint

/// Fills `part` with the transitions of `ways` on [low, high], relative to `low`; adjacent ranges
/// with the same target are merged.
inline void slice(const Ways& ways, uint32_t low, uint32_t high, Ways* part) {
  part->clear();
  for (const Way& way : ways) {
    if (way.high < low || way.low > high) continue;
    const Way one = {std::max(way.low, low) - low, std::min(way.high, high) - low, way.target};
    if (!part->empty() && part->back().target == one.target && part->back().high + 1 == one.low) {
      part->back().high = one.high;
    } else {
      part->push_back(one);
    }
  }
}

}  // namespace gen::grammar
