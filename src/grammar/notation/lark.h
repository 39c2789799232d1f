// SPDX-License-Identifier: Apache-2.0
// Lark files in llguidance's dialect. Rules have names in lower case; "start" is the whole text.
// Terminals have names in upper case; they are regular, and nothing is ignored within them.
// docs/grammars.md lists the notation and what is refused.
//
// There is no lexer. A terminal may end wherever it matches, and every division of the text is
// followed, as with Lark's lexer "dynamic_complete". Ignored text may follow each terminal, token,
// %json and %lark of a rule.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/expression/expression.h"
#include "grammar/schema/schema.h"

namespace gen::grammar {

/// Adds the rules of `text` to `to` and returns the expression of its start. `schemas` are the
/// options of %json; their fuel also limits the automata of &, ~ and attributes: the states of
/// each, and the work of all together. Errors: kGrammar with line and column. Cost: linear in the
/// text, plus automata and schemas. Recurses only for %lark inside %lark, at most 8 deep.
Result<ExprId> parse_lark(std::string_view text, Expressions& to, const SchemaOptions& schemas = {},
                          SchemaReport* report = nullptr);

}  // namespace gen::grammar
