// SPDX-License-Identifier: Apache-2.0
// GBNF, the grammar notation of llama.cpp: rules `name ::= alternatives`, where "root" is the whole
// text; "texts", [classes] with ranges and ^, `.` for any character, groups, ? * + {m} {m,} {m,n},
// token terminals <[id]>, <name> and their negations with !, comments from # on. Escapes: \n \r \t
// \\ \" \[ \] \xNN \uNNNN \UNNNNNNNN, all of them characters. Rules may be recursive in any
// position. Extensions: an alternative may begin a line of a rule, and names may contain an
// underscore.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// Adds the rules of `text` to `to` and returns the expression of its root. kGrammar with line and
/// column. Cost: linear; no recursion.
Result<ExprId> parse_gbnf(std::string_view text, Expressions& to);

}  // namespace gen::grammar
