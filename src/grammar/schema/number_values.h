// SPDX-License-Identifier: Apache-2.0
// What is asked of numbers, answered for single values, where that spares an automaton.
#pragma once

#include <span>
#include <vector>

#include "grammar/schema/number_dfa.h"

namespace gen::grammar {

/// Whether the value, in one of its texts, is such a number.
bool number_holds(const NumberLiteral& literal, const Decimal& value);
/// Whether a value that is easily found fits all; if not, there may still be one.
bool some_number_holds(std::span<const NumberLiteral> all);
/// Makes one list of values out of all literals where one is such a list: `*values` then fits what
/// the others ask, but for those that ask about texts, which stay in `*all`. False if none is.
bool only_values(std::vector<NumberLiteral>* all, NumberTerm* values);
/// Adds the list of the multiples, `*listed`, where a term of `all` must be listed and bounds leave
/// at most 4096 of them; false if they leave more, or are not there.
bool list_multiples(std::vector<NumberLiteral>* all, NumberTerm* listed);
/// Whether the multiples of both are those of one term that need not be listed: `*both`. One of
/// whole numbers counts as multiples of 1.
bool common_multiple(const NumberTerm& a, const NumberTerm& b, NumberTerm* both);
/// Takes out the bounds that follow from others.
void keep_tightest(std::vector<NumberLiteral>* all);

}  // namespace gen::grammar
