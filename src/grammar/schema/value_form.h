// SPDX-License-Identifier: Apache-2.0
// ValueForm: how the values of a schema are written where that is not JSON, such as the arguments
// of calls. The schema's builders ask it for brackets, names and strings; numbers are those of
// JSON. A value may be in one form and the values within it in another.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

class ValueForm {
 public:
  /// The text around and between members or items.
  struct List {
    ExprId open = Expressions::kEmpty;
    ExprId between = Expressions::kNever;  // not empty
    ExprId close = Expressions::kEmpty;
    ExprId none = Expressions::kEmpty;  // of a list without any
  };
  /// The form of values within a value.
  struct Inside {
    const ValueForm* form = nullptr;  // null: JSON
    bool watched = false;             // JSON may be checked beside the grammar (JsonRules)
  };
  virtual ~ValueForm() = default;

  [[nodiscard]] const List& array() const noexcept { return array_; }
  [[nodiscard]] const List& object() const noexcept { return object_; }
  /// null, false and true.
  [[nodiscard]] const std::array<ExprId, 3>& words() const noexcept { return words_; }
  /// Of the items of arrays, and of members; `name` is null for names that no keyword lists.
  [[nodiscard]] virtual Inside inside_array() const = 0;
  [[nodiscard]] virtual Inside inside_object(const std::string* name) const = 0;
  /// Those of the strings that can be written. kGrammar if that exceeds the fuel.
  virtual Result<Dfa> writable(const Dfa& strings) const = 0;
  /// The texts of strings that can be written, of at most `most` characters. kGrammar as above.
  virtual Result<ExprId> text_of(const Dfa& strings, uint32_t most) const = 0;
  /// The text of a number, given that of JSON.
  [[nodiscard]] virtual ExprId number(ExprId text) const { return text; }
  /// A member, and one with any of the names. kNever: there is no way to write it. kGrammar as
  /// above.
  virtual Result<ExprId> member(const std::string& name, ExprId value) const = 0;
  virtual Result<ExprId> members(const Dfa& names, ExprId value) const = 0;

 protected:
  List array_;
  List object_;
  std::array<ExprId, 3> words_ = {};
};

}  // namespace gen::grammar
