// SPDX-License-Identifier: Apache-2.0
// Regular expressions of ECMA-262, read as with its flag u: alternatives, groups (captures capture
// nothing), classes, `.`, \d \w \s and their negations, escapes, greedy and lazy quantifiers (for
// membership they are one), ^ and $ at the ends. As Annex B has it, a `{` that begins no quantifier
// and a `]` or `}` alone stand for themselves. Refused by name: backreferences, lookaround, flags
// in groups, \p, \b and \B, and ^ or $ elsewhere.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/expression.h"

namespace gen::grammar {

enum class RegexMatch {
  kWhole,   // texts that match from end to end; ^ and $ say nothing new
  kSearch,  // texts that hold a match, as JSON Schema's "pattern" has it
};

/// kGrammar with line and column. Cost: linear; nothing recurses.
Result<ExprId> parse_regex(std::string_view pattern, RegexMatch match, Expressions& to);

}  // namespace gen::grammar
