// SPDX-License-Identifier: Apache-2.0
// JSON (RFC 8259) as expressions.
#pragma once

#include "grammar/expression.h"

namespace gen::grammar {

struct JsonLimits {
  uint32_t space = 64;           // characters in one gap, so that a model cannot loop there
  uint32_t digits = kUnbounded;  // in a row, at least 1
};

/// Any value, with white space around it.
ExprId any_json_expression(Expressions& to, const JsonLimits& limits = {});

}  // namespace gen::grammar
