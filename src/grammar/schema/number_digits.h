// SPDX-License-Identifier: Apache-2.0
// Number constraints (number_dfa.h) evaluated on the digits before the exponent: a few words per
// term that track the digits, and the set of exponents with which the term holds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "grammar/schema/number_dfa.h"

namespace gen::grammar {

/// A set of whole numbers: whether it contains those towards minus infinity, and where that
/// changes.
struct ExponentSet {
  bool below = false;
  std::vector<int64_t> flips;  // ascending; each belongs to the part after it

  [[nodiscard]] bool has(int64_t exponent) const;
  [[nodiscard]] bool above() const { return below != (flips.size() % 2 == 1); }
  /// Beyond this distance from 0, membership no longer changes.
  [[nodiscard]] int64_t reach() const;
  auto operator<=>(const ExponentSet&) const = default;
};
ExponentSet operator~(ExponentSet set);
ExponentSet operator&(const ExponentSet& a, const ExponentSet& b);

/// Digit counts that all terms share.
struct DigitCount {
  uint32_t whole = 0;   // 0 from the point on
  uint32_t places = 0;  // after the point
  bool many = false;    // no exponent can follow any more
  bool nonzero = false;

  /// Adds a digit. `scientific`: an exponent can only follow a number with one digit before the
  /// point, which is not 0 unless the number is.
  void add(bool fraction, int digit, bool scientific);
  bool operator==(const DigitCount&) const = default;
};

/// The words of one term.
using DigitWords = std::array<int32_t, 3>;

DigitWords first_words(const NumberTerm& term);
/// Updates the words for one more digit. `before` and `now`: the counts without and with it.
void add_digit(const NumberTerm& term, int digit, bool fraction, const DigitCount& before,
               const DigitCount& now, DigitWords* words);
/// Digits whose transition differs from that of the previous digit, a bit each.
uint32_t digit_borders(const NumberTerm& term, const DigitCount& count, const DigitWords& words);
/// Whether the term can no longer hold, whatever follows.
bool is_hopeless(const NumberTerm& term, const DigitCount& count, const DigitWords& words);
/// The exponents with which the term holds; a text without one (`exponent` is false) counts as
/// having 0.
ExponentSet exponents_of(const NumberTerm& term, bool minus, bool exponent, const DigitCount& count,
                         const DigitWords& words);

}  // namespace gen::grammar
