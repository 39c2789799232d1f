// SPDX-License-Identifier: Apache-2.0
// JSON (RFC 8259) as expressions, all of it or in one style.
#pragma once

#include "grammar/expression/expression.h"
#include "grammar/json/json_style.h"

namespace gen::grammar {

/// Any value, with white space around it.
ExprId any_json_expression(Expressions& to, const JsonStyle& style = {});
/// White space in one place, possibly none.
ExprId json_space(Expressions& to, const JsonStyle& style);
/// One character of a string in plain style: escaped only where it has to be.
ExprId plain_character(Expressions& to);
/// An unconstrained number.
ExprId json_number(Expressions& to, const JsonStyle& style);

}  // namespace gen::grammar
