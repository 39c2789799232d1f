// SPDX-License-Identifier: Apache-2.0
// Arguments as {name:value, …} with names without quotes and strings between marks.
#pragma once

#include <string>

#include "calls/call_format.h"
#include "calls/syntax/json_form.h"
#include "calls/syntax/marks.h"

namespace gen::calls {

class DictForm final : public JsonForm {
 public:
  DictForm(const ArgumentMarks& form, const MarkWriter& marks,
           const grammar::SchemaOptions& options);
  Result<grammar::Dfa> writable(const grammar::Dfa& strings) const override;
  Result<grammar::ExprId> text_of(const grammar::Dfa& strings, uint32_t most) const override;
  Result<grammar::ExprId> member(const std::string& name, grammar::ExprId value) const override;
  Result<grammar::ExprId> members(const grammar::Dfa& names, grammar::ExprId value) const override;

 private:
  const std::string quote_;
  const grammar::ExprId mark_;
};

}  // namespace gen::calls
