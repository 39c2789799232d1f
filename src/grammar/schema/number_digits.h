// SPDX-License-Identifier: Apache-2.0
// What the digits of a number, before its exponent, tell about the terms asked of it
// (number_dfa.h): a few words for each term that follow the digits, and for which exponents the
// term then holds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "grammar/schema/number_dfa.h"

namespace gen::grammar {

/// A set of whole numbers: whether it has those far below, and where that changes.
struct ExponentSet {
  bool below = false;
  std::vector<int64_t> flips;  // rising; each belongs to what comes behind it

  [[nodiscard]] bool has(int64_t exponent) const;
  [[nodiscard]] bool above() const { return below != (flips.size() % 2 == 1); }
  /// From there on, either way, all are alike.
  [[nodiscard]] int64_t reach() const;
  auto operator<=>(const ExponentSet&) const = default;
};
ExponentSet operator~(ExponentSet set);
ExponentSet operator&(const ExponentSet& a, const ExponentSet& b);

/// What all terms need to know of the digits.
struct DigitCount {
  uint32_t whole = 0;   // 0 from the point on
  uint32_t places = 0;  // behind the point
  bool many = false;    // no exponent can come any more
  bool nonzero = false;

  /// One digit more. `scientific`: an exponent can only follow a number with one digit before the
  /// point, which is not 0 unless the number is.
  void add(bool fraction, int digit, bool scientific);
  bool operator==(const DigitCount&) const = default;
};

/// Of one term.
using DigitWords = std::array<int32_t, 3>;

DigitWords first_words(const NumberTerm& term);
/// Behind one digit more. `before` and `now`: without it and with it.
void add_digit(const NumberTerm& term, int digit, bool fraction, const DigitCount& before,
               const DigitCount& now, DigitWords* words);
/// Digits that lead elsewhere than the one before them: a bit each.
uint32_t digit_borders(const NumberTerm& term, const DigitCount& count, const DigitWords& words);
/// Whether the term can no longer be true, whatever follows.
bool is_hopeless(const NumberTerm& term, const DigitCount& count, const DigitWords& words);
/// The exponents with which the term holds; a text without one (`exponent` is false) counts as one
/// with 0.
ExponentSet exponents_of(const NumberTerm& term, bool minus, bool exponent, const DigitCount& count,
                         const DigitWords& words);

}  // namespace gen::grammar
