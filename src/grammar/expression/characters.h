// SPDX-License-Identifier: Apache-2.0
// Sets of characters, and the bytes of their UTF-8.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/expression/expression.h"

namespace gen::grammar {

inline constexpr uint32_t kLastCharacter = 0x10FFFF;

struct CharRange {
  uint32_t low;
  uint32_t high;  // inclusive
};

/// Ranges in ascending order, neither overlapping nor adjacent, without surrogates.
class CharSet {
 public:
  void add(uint32_t low, uint32_t high);
  void add(const CharSet& other);
  /// Ranges in any order. Costs less than adding them one by one.
  void add(std::vector<CharRange> ranges);
  [[nodiscard]] CharSet inverted() const;
  [[nodiscard]] const std::vector<CharRange>& ranges() const noexcept { return ranges_; }

 private:
  std::vector<CharRange> ranges_;
};

/// One character of the set.
ExprId characters(Expressions& to, const CharSet& set);

}  // namespace gen::grammar
