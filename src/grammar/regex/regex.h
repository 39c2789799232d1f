// SPDX-License-Identifier: Apache-2.0
// Regular expressions of ECMA-262, over whole characters as with its flag u: alternatives, groups
// (captures capture nothing), classes, `.`, \d \w \s \b, \p{...}, escapes, greedy and lazy
// quantifiers (for membership they are one), ^ and $, lookahead and lookbehind. Where the flag u
// would refuse, Annex B is followed: a `{` that begins no quantifier, a `]` or `}` alone and
// escapes without a meaning stand for themselves, \101 is octal, sets in ranges are sets (refused
// beside \p{...} or \u{...}, which only that flag has), lookaheads may be repeated. Refused by
// name: backreferences and flags of groups. Surrogates are no characters: in classes they add
// nothing.
//
// The same reader takes patterns as Rust has them, which Lark files hold: \d \w \s are Unicode's,
// `.` is all but \n, groups have flags, \pL \p{Greek} \x{e9} \U0001F999, {,n}; letters have no
// escape without a meaning. Refused by name there: ^ $ \b and the like, lookaround, lazy
// quantifiers, bytes (?-u), classes in classes.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

enum class RegexMatch {
  kWhole,   // texts that match from end to end; ^ and $ say nothing new
  kSearch,  // texts that hold a match, as JSON Schema's "pattern" has it
};

enum class RegexSyntax { kEcma, kRust };

struct RegexFlags {
  RegexSyntax syntax = RegexSyntax::kEcma;
  bool any_case = false;        // i
  bool dot_is_all = false;      // s
  bool spaces_ignored = false;  // x
};

class RegexSets;

/// kGrammar with line and column. Cost: linear, but for patterns with lookaround, borders of words,
/// or ^ and $ inside: these become an automaton, within the fuel.
Result<ExprId> parse_regex(std::string_view pattern, RegexMatch match, Expressions& to,
                           const DfaFuel& fuel = {});

/// A pattern as Rust has it, from `begin` to the end of `text`, which is UTF-8 and matches from end
/// to end.
/// kGrammar with the line and column in `text`. Cost: linear; nothing recurses.
Result<ExprId> parse_rust_regex(std::string_view text, size_t begin, RegexFlags flags,
                                RegexSets& sets);

}  // namespace gen::grammar
