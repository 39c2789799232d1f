// SPDX-License-Identifier: Apache-2.0
// Arguments of calls as in Python: name=value, with the values' literals.
#pragma once

#include <string>

#include "calls/syntax/json_form.h"

namespace gen::calls {

class PythonValues final : public JsonForm {
 public:
  PythonValues(grammar::Expressions& to, const grammar::SchemaOptions& options);
};

class PythonForm final : public JsonForm {
 public:
  PythonForm(grammar::Expressions& to, const grammar::SchemaOptions& options);
  [[nodiscard]] Inside inside_object(const std::string* name) const override;
  Result<grammar::ExprId> member(const std::string& name, grammar::ExprId value) const override;
  Result<grammar::ExprId> members(const grammar::Dfa& names, grammar::ExprId value) const override;

 private:
  PythonValues values_;
};

}  // namespace gen::calls
