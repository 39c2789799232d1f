// SPDX-License-Identifier: Apache-2.0
// JSON (RFC 8259) as expressions.
#pragma once

#include "grammar/expression.h"

namespace gen::grammar {

/// Any value, with white space around it.
ExprId any_json_expression(Expressions& to);

}  // namespace gen::grammar
