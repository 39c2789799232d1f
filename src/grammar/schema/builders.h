// SPDX-License-Identifier: Apache-2.0
// Interfaces shared by the builders of objects, arrays and values (schema.cpp).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "grammar/expression/expression.h"
#include "grammar/schema/clause.h"
#include "grammar/schema/clause_maker.h"

namespace gen::grammar {

/// Expressions shared by all values.
struct JsonParts {
  Expressions* to = nullptr;
  ExprId space = Expressions::kEmpty;  // white space, possibly none
  ExprId character = 0;                // of a string
  ExprId comma = 0;                    // with white space after it
  ExprId colon = 0;                    // with white space on both sides
  bool watched = false;                // arrays may be watched, see json_text.h
  bool names_watched = false;          // duplicate names are refused beside the grammar
  /// The expression of a value for which the literals hold, without white space.
  std::function<Result<ExprId>(const Literals&)> value;
  /// The JSON texts of the strings, with their quotes.
  std::function<Result<ExprId>(const Dfa&)> strings;
  /// ... of strings that are patterns.
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

/// The JSON texts of objects that satisfy the clause.
Result<ExprId> object_expression(const JsonParts& parts, ClauseMaker& maker, const Clause& clause);
/// The JSON texts of arrays that satisfy the clause.
Result<ExprId> array_expression(const JsonParts& parts, ClauseMaker& maker, const Clause& clause);

}  // namespace gen::grammar
