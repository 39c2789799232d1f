// SPDX-License-Identifier: Apache-2.0
// Unicode's properties of characters, for wordpiece_tokenizer.cpp.
#pragma once

#include <cstdint>
#include <span>

namespace gen::tokenizer {

struct CharacterRange {
  uint32_t first, last;
};
/// first, first + step, … last: `delta` added gives the letter in lower case.
struct CaseRun {
  uint32_t first, last, step;
  int32_t delta;
};

// All ascending.
/// Category Mn: marks that take no space.
std::span<const CharacterRange> accents() noexcept;
/// Categories Cc, Cf and Co.
std::span<const CharacterRange> controls() noexcept;
/// Categories P*.
std::span<const CharacterRange> punctuation() noexcept;
/// Of a letter with several in lower case, the first.
std::span<const CaseRun> cases() noexcept;

}  // namespace gen::tokenizer
