// SPDX-License-Identifier: Apache-2.0
// Sets of numbers as automata over their JSON texts.
//
// A value has endlessly many texts: 1, 1.0, 10e-1, 0.00001e5. That digits and exponent make up for
// each other over any distance is not regular, so texts with an exponent have at most kMostWhole
// digits before the point here and kMostPlaces behind it, which all usual writers of doubles keep
// to; without an exponent, and in exponents, any number of digits is fine.
// The texts of number_texts() are all there are: complements are taken within them.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "grammar/dfa.h"
#include "grammar/schema/json_value.h"

namespace gen::grammar {

inline constexpr int kMostWhole = 4;
inline constexpr int kMostPlaces = 17;

enum class Bound : uint8_t { kEqual, kAtLeast, kAbove, kAtMost, kBelow };

Dfa number_texts();
/// Texts, of numbers or not, with at most so many digits in a row.
Dfa short_digits(uint32_t most);
/// Whole numbers, 1.0 and 1e2 among them; plain: only those written without fraction and exponent.
Dfa integer_texts(bool plain);
/// kGrammar if it takes more than the fuel, here and below.
Result<Dfa> bounded_texts(const Decimal& limit, Bound bound, const DfaFuel& fuel);
/// kGrammar also for a divisor whose digits are above 2^16.
Result<Dfa> multiple_texts(const Decimal& divisor, const DfaFuel& fuel);

}  // namespace gen::grammar
