// SPDX-License-Identifier: Apache-2.0
// Number constraints evaluated for single values, where that avoids an automaton.
#pragma once

#include <span>
#include <vector>

#include "grammar/schema/number_dfa.h"

namespace gen::grammar {

/// Whether the literal holds for the value in one of its texts.
bool number_holds(const NumberLiteral& literal, const Decimal& value);
/// Whether an easily found value satisfies all; if not, there may still be one.
bool some_number_holds(std::span<const NumberLiteral> all);
/// If one literal is a list, filters it by all others: `*values` then has the values that satisfy
/// them, except those literals that constrain texts, which stay in `*all`. False if none is a list.
bool only_values(std::vector<NumberLiteral>* all, NumberTerm* values);
/// Adds the list of multiples, `*listed`, if a term of `all` must be listed and bounds leave at
/// most 4096 of them; false if they leave more, or are missing.
bool list_multiples(std::vector<NumberLiteral>* all, NumberTerm* listed);
/// Whether the common multiples are those of one term that need not be listed: `*both`. Whole
/// numbers count as multiples of 1.
bool common_multiple(const NumberTerm& a, const NumberTerm& b, NumberTerm* both);
/// Removes bounds that others imply.
void keep_tightest(std::vector<NumberLiteral>* all);

}  // namespace gen::grammar
