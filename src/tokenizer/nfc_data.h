// SPDX-License-Identifier: Apache-2.0
// The Unicode data of nfc.cpp, without Hangul syllables, which go by a formula.
#pragma once

#include <cstdint>
#include <span>

namespace gen::tokenizer {

/// A character and what it is taken apart to, one step deep; `second` is 0 where that is one.
struct Decomposition {
  uint32_t character, first, second;
  bool composes;  // the two become the character again
};
/// Characters of one combining class that is not 0.
struct CombiningRange {
  uint32_t first, last;
  uint8_t order;
};

/// By character.
std::span<const Decomposition> decompositions() noexcept;
/// By first.
std::span<const CombiningRange> combining_ranges() noexcept;
/// Places in decompositions() of those that compose, by first and second.
std::span<const uint16_t> compositions() noexcept;

}  // namespace gen::tokenizer
