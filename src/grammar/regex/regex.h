// SPDX-License-Identifier: Apache-2.0
// Regular expressions of ECMA-262, over whole characters as with the flag u: alternatives, groups
// (captures have no effect), classes, `.`, \d \w \s \b, \p{...}, escapes, greedy and lazy
// quantifiers (equivalent for membership), ^ and $, lookahead and lookbehind. Where the flag u
// would refuse a pattern, Annex B applies: a `{` that begins no quantifier, a single `]` or `}` and
// unknown escapes are ordinary characters, \101 is octal, sets in ranges are sets (refused beside
// \p{...} or \u{...}, which need that flag), lookaheads may be repeated. Refused by name:
// backreferences and flags of groups. Surrogates are not characters: in classes they add nothing.
//
// The same parser reads patterns in Rust's syntax, as in Lark files: \d \w \s are Unicode's, `.` is
// any character except \n, groups have flags, \pL \p{Greek} \x{e9} \U0001F999, {,n}; unknown letter
// escapes are errors. Refused by name there: ^ $ \b and the like, lookaround, lazy quantifiers,
// bytes (?-u), nested classes.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

enum class RegexMatch {
  kWhole,   // texts that match as a whole; ^ and $ at the ends have no effect
  kSearch,  // texts that contain a match, as for JSON Schema's "pattern"
};

enum class RegexSyntax { kEcma, kRust };

struct RegexFlags {
  RegexSyntax syntax = RegexSyntax::kEcma;
  bool any_case = false;        // i
  bool dot_is_all = false;      // s
  bool spaces_ignored = false;  // x
};

class RegexSets;

/// kGrammar with line and column. Cost: linear, except for patterns with lookaround, word
/// boundaries, or ^ and $ inside: these become an automaton, within the fuel.
Result<ExprId> parse_regex(std::string_view pattern, RegexMatch match, Expressions& to,
                           const DfaFuel& fuel = {});

/// A pattern in Rust's syntax, from `begin` to the end of `text`, which is UTF-8; it matches whole
/// texts. kGrammar with the line and column in `text`. Cost: linear; no recursion.
Result<ExprId> parse_rust_regex(std::string_view text, size_t begin, RegexFlags flags,
                                RegexSets& sets);

}  // namespace gen::grammar
