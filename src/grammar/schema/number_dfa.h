// SPDX-License-Identifier: Apache-2.0
// Sets of numbers as automata over their JSON texts.
//
// A value has infinitely many texts: 1, 1.0, 10e-1, 0.00001e5. That digits and exponent compensate
// each other over any distance is not regular; texts with an exponent therefore have at most
// kMaxWhole digits before the point here and kMaxPlaces after it, which all usual writers of
// doubles respect. Without an exponent, and in exponents, any number of digits is allowed. Where
// more than kMaxFree values are listed, a number with an exponent has one digit before the point,
// which is not 0 unless the number is: otherwise each value would need states for every possible
// position of the point. Negation is relative to these texts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/schema/json_value.h"

namespace gen::grammar {

inline constexpr uint32_t kMaxWhole = 4;
inline constexpr uint32_t kMaxPlaces = 17;
inline constexpr size_t kMaxFree = 32;
inline constexpr size_t kMaxListedDigits = 65'535;  // of a listed number; DigitWords count them

enum class Bound : uint8_t { kAtLeast, kAbove, kAtMost, kBelow };

/// One constraint on a number.
struct NumberTerm {
  enum class Kind : uint8_t {
    kInteger,   // a whole number, including 1.0 and 1e2
    kPlain,     // written without fraction and exponent
    kBound,     // on one side of values[0]
    kMultiple,  // of divisor * 10^-scale
    kOneOf,     // of the values
  };
  Kind kind = Kind::kInteger;
  Bound bound = Bound::kAtLeast;
  uint64_t divisor = 1;
  int64_t scale = 0;
  std::vector<Decimal> values;  // by Decimal::key()

  /// kGrammar for a value beyond 10^4096 or 10^-4096, here and below.
  static Result<NumberTerm> bounded(Decimal limit, Bound bound);
  /// kGrammar also for a value of more than kMaxListedDigits digits.
  static Result<NumberTerm> one_of(std::vector<Decimal> values);
  /// kGrammar also for a divisor of more than 17 significant digits.
  static Result<NumberTerm> multiple(const Decimal& divisor);
  /// Larger divisors have too many remainders: such multiples must be listed (number_values.h).
  static constexpr uint64_t kMaxDivisor = 65'536;
  [[nodiscard]] bool must_be_listed() const noexcept {
    return kind == Kind::kMultiple && divisor > kMaxDivisor;
  }
};

struct NumberLiteral {
  const NumberTerm* term = nullptr;
  bool negated = false;
};

/// The texts of the numbers that satisfy all terms. kGrammar if that exceeds the fuel.
Result<Dfa> number_texts(std::span<const NumberLiteral> all, const DfaFuel& fuel);
/// All texts, not only numbers, with at most `most` digits in a row.
Dfa short_digits(uint32_t most);

}  // namespace gen::grammar
