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
#include "grammar/schema/value_form.h"

namespace gen::grammar {

/// Expressions shared by all values of a form.
struct JsonParts {
  Expressions* to = nullptr;
  const ValueForm* form = nullptr;     // null: JSON
  ExprId space = Expressions::kEmpty;  // white space, possibly none
  ExprId character = 0;                // of a string
  ExprId comma = 0;                    // with white space after it
  ExprId colon = 0;                    // with white space on both sides
  bool watched = false;                // arrays may be watched, see json_text.h
  bool names_watched = false;          // duplicate names are refused beside the grammar
  /// The expression of an item for which the literals hold, without white space.
  std::function<Result<ExprId>(const Literals&)> item;
  /// The same of a member's value; the name is null for names that no keyword lists.
  std::function<Result<ExprId>(const std::string*, const Literals&)> member;
  /// Reports a keyword that has no effect.
  std::function<void(const JsonValue*, const char*)> relax;
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
