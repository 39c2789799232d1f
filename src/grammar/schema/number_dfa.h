// SPDX-License-Identifier: Apache-2.0
// Sets of numbers as automata over their JSON texts.
//
// A value has endlessly many texts: 1, 1.0, 10e-1, 0.00001e5. That digits and exponent make up for
// each other over any distance is not regular, so texts with an exponent have at most kMaxWhole
// digits before the point here and kMaxPlaces behind it, which all usual writers of doubles keep
// to; without an exponent, and in exponents, any number of digits is fine. Where more than
// kMaxFree values are listed, a number with an exponent has one digit before the point, which is
// not 0 unless the number is: each value would else have states for every place where its point may
// stand. Negation is taken within these texts.
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

enum class Bound : uint8_t { kAtLeast, kAbove, kAtMost, kBelow };

/// One thing asked of a number.
struct NumberTerm {
  enum class Kind : uint8_t {
    kInteger,   // a whole number, 1.0 and 1e2 among them
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

  /// kGrammar for a value beyond 10^4096, either way, here and below.
  static Result<NumberTerm> bounded(Decimal limit, Bound bound);
  static Result<NumberTerm> one_of(std::vector<Decimal> values);
  /// kGrammar also for a divisor of more than 17 digits without its zeros.
  static Result<NumberTerm> multiple(const Decimal& divisor);
  /// Remainders of greater ones are too many: such multiples must be listed (number_values.h).
  static constexpr uint64_t kMaxDivisor = 65'536;
  [[nodiscard]] bool must_be_listed() const noexcept {
    return kind == Kind::kMultiple && divisor > kMaxDivisor;
  }
};

struct NumberLiteral {
  const NumberTerm* term = nullptr;
  bool negated = false;
};

/// Texts of the numbers of which all of that is true. kGrammar if it takes more than the fuel.
Result<Dfa> number_texts(std::span<const NumberLiteral> all, const DfaFuel& fuel);
/// Texts, of numbers or not, with at most so many digits in a row.
Dfa short_digits(uint32_t most);

}  // namespace gen::grammar
