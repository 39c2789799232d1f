// SPDX-License-Identifier: Apache-2.0
// The Unicode data of nfc.cpp, without Hangul syllables, which follow a formula.
#pragma once

#include <cstdint>
#include <span>

namespace gen::tokenizer {

/// A character and its decomposition by one step; `second` is 0 if that is a single character.
struct Decomposition {
  uint32_t character, first, second;
  bool composes;  // the two compose to the character again
};
/// Characters of one non-zero combining class.
struct CombiningRange {
  uint32_t first, last;
  uint8_t order;
};

/// By character.
std::span<const Decomposition> decompositions() noexcept;
/// By first.
std::span<const CombiningRange> combining_ranges() noexcept;
/// Indices in decompositions() of those that compose, by first and second.
std::span<const uint16_t> compositions() noexcept;

}  // namespace gen::tokenizer
