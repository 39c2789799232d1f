// SPDX-License-Identifier: Apache-2.0
// What the builders of objects and arrays share with that of values (schema.cpp).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "grammar/expression/expression.h"
#include "grammar/schema/clause.h"
#include "grammar/schema/clause_maker.h"

namespace gen::grammar {

/// Expressions that all values have in common.
struct JsonParts {
  Expressions* to = nullptr;
  ExprId space = Expressions::kEmpty;  // white space, perhaps none
  ExprId character = 0;                // of a string
  ExprId comma = 0;                    // with space behind it
  ExprId colon = 0;                    // with space on both sides
  bool watched = false;                // arrays may be, see json_text.h
  bool names_watched = false;          // of objects: none comes twice, whatever the grammar says
  /// Of a value for which the literals hold, without space.
  std::function<Result<ExprId>(const Literals&)> value;
  /// Any spelling of the strings, with their quotes.
  std::function<Result<ExprId>(const Dfa&)> strings;
  /// ... that are patterns.
  std::function<Result<ExprId>()> patterns;
  /// ... of a name.
  std::function<Result<ExprId>(const std::string&)> key;

  [[nodiscard]] ExprId byte(char c) const {
    return to->bytes(ByteSet::one(static_cast<uint8_t>(c)));
  }
  [[nodiscard]] ExprId all(std::initializer_list<ExprId> parts) const {
    return to->sequence(std::span(parts.begin(), parts.size()));
  }
  [[nodiscard]] ExprId any(std::initializer_list<ExprId> parts) const {
    return to->choice(std::span(parts.begin(), parts.size()));
  }
};

/// The texts of objects that fit the clause.
Result<ExprId> object_expression(const JsonParts& parts, ClauseMaker& maker, const Clause& clause);
/// The texts of arrays that fit the clause.
Result<ExprId> array_expression(const JsonParts& parts, ClauseMaker& maker, const Clause& clause);

}  // namespace gen::grammar
