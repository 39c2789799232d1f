// SPDX-License-Identifier: Apache-2.0
// Regular expressions of ECMA-262, over whole characters as with its flag u: alternatives, groups
// (captures capture nothing), classes, `.`, \d \w \s \b, \p{...}, escapes, greedy and lazy
// quantifiers (for membership they are one), ^ and $, lookahead and lookbehind. Where the flag u
// would refuse, Annex B is followed: a `{` that begins no quantifier, a `]` or `}` alone and
// escapes without a meaning stand for themselves, \101 is octal, sets in ranges are sets,
// lookaheads may be repeated. Refused by name: backreferences and flags of groups. Surrogates are
// no characters: in classes they add nothing.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/dfa.h"
#include "grammar/expression.h"

namespace gen::grammar {

enum class RegexMatch {
  kWhole,   // texts that match from end to end; ^ and $ say nothing new
  kSearch,  // texts that hold a match, as JSON Schema's "pattern" has it
};

/// kGrammar with line and column. Cost: linear, but for patterns with lookaround, borders of words,
/// or ^ and $ inside: these become an automaton, within the fuel.
Result<ExprId> parse_regex(std::string_view pattern, RegexMatch match, Expressions& to,
                           const DfaFuel& fuel = {});

}  // namespace gen::grammar
