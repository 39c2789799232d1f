// SPDX-License-Identifier: Apache-2.0
// Lark files in the dialect of llguidance. Rules have names in lower case, of which "start" is the
// whole, and terminals have names in upper case: those are regular, and between their parts nothing
// is ignored. "texts" and "texts"i, /regular expressions/ as Rust has them (regex.h), "a".."z",
// groups, [x] and x? for optional ones, * + {m,n} ~m..n, alternatives, -> names and priorities,
// which say nothing, %ignore, %import common.NAME, %json, %regex, %lark, tokens as <name>,
// <[1,5-7]>, <[^1]> and
// <[*]>; of terminals & and ~; of rules [lazy], [suffix=…], [stop=…].
//
// No lexer divides the text: a terminal may end wherever it matches, and all ways to divide the
// text are followed, as with the lexer "dynamic_complete" of Lark. Behind each terminal, token,
// %json and %lark may stand what is ignored.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/expression.h"
#include "grammar/schema/schema.h"

namespace gen::grammar {

/// Adds the rules of `text` to `to` and gives the expression of its start. What %json holds is read
/// with `schemas`, whose fuel for automata all & and ~ and attributes of the file have together.
/// kGrammar with line and column; what is refused is refused by name. Cost: linear, and that of
/// automata and schemas; recurses only for %lark in %lark, a few times.
Result<ExprId> parse_lark(std::string_view text, Expressions& to, const SchemaOptions& schemas = {},
                          SchemaReport* report = nullptr);

}  // namespace gen::grammar
