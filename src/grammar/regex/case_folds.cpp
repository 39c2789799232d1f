// SPDX-License-Identifier: Apache-2.0
// Case-insensitive characters, see case_folds.h.
#include "grammar/regex/case_folds.h"

#include <algorithm>

namespace gen::grammar {
namespace {

// Every `step`-th character from low to high is the same letter as the one at the same distance
// from `first`.
struct Fold {
  uint32_t low;
  uint32_t high;
  uint32_t step;
  uint32_t first;
};

// clang-format off
constexpr Fold kFolds[] = {
#include "grammar/regex/case_folds_data.inc"
};
// clang-format on

constexpr uint32_t kKelvin = 0x212A;
constexpr uint32_t kLongS = 0x17F;

bool holds(const CharSet& set, uint32_t c) {
  const auto& ranges = set.ranges();
  const auto behind = std::partition_point(ranges.begin(), ranges.end(),
                                           [&](const CharRange& r) { return r.low <= c; });
  return behind != ranges.begin() && (behind - 1)->high >= c;
}

CharSet ascii_without_case(const CharSet& set) {
  CharSet made = set;
  for (const CharRange& range : set.ranges()) {
    const auto add_moved = [&](uint32_t first, uint32_t last, uint32_t to) {
      const uint32_t low = std::max(range.low, first);
      const uint32_t high = std::min(range.high, last);
      if (low <= high) made.add(low - first + to, high - first + to);
    };
    add_moved('a', 'z', 'A');
    add_moved('A', 'Z', 'a');
  }
  if (holds(made, 'k')) made.add(kKelvin, kKelvin);
  if (holds(made, 's')) made.add(kLongS, kLongS);
  return made;
}

}  // namespace

CharSet without_case(const CharSet& set) {
  if (set.ranges().empty()) return set;
  if (set.ranges().back().high < 0x80) return ascii_without_case(set);
  CharSet firsts;  // of the letters of members
  const auto each = [](auto&& visit) {
    for (const Fold& fold : kFolds) {
      for (uint32_t c = fold.low; c <= fold.high; c += fold.step)
        visit(c, c - fold.low + fold.first);
    }
  };
  each([&](uint32_t c, uint32_t first) {
    if (holds(set, c)) firsts.add(first, first);
  });
  CharSet made = set;
  made.add(firsts);
  const CharSet known = made;
  each([&](uint32_t c, uint32_t first) {
    if (holds(known, first)) made.add(c, c);
  });
  return made;
}

}  // namespace gen::grammar
