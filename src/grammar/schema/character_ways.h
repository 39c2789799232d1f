// SPDX-License-Identifier: Apache-2.0
// Where characters lead to, by ranges, for automata that spell characters as digits or bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gen::grammar {

/// Characters of a range that lead to one state.
struct Way {
  uint32_t low;
  uint32_t high;
  uint32_t target;
  auto operator<=>(const Way&) const = default;
};
using Ways = std::vector<Way>;  // in order, apart

/// Fills `part` with what `ways` say of [low, high], counted from `low`; neighbours that lead to
/// one state are joined.
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
