// SPDX-License-Identifier: Apache-2.0
// Arguments as nested tags. Members that the schema does not name are left out: no grammar can say
// that a tag ends as it began.
#pragma once

#include <string>

#include "calls/call_format.h"
#include "calls/syntax/json_form.h"
#include "calls/syntax/marks.h"
#include "calls/syntax/tagged_form.h"
#include "calls/tool.h"

namespace gen::calls {

class NestedForm final : public JsonForm {
 public:
  /// Of the arguments; all outlive it.
  NestedForm(const ArgumentMarks& form, const Tool& tool, const MarkWriter& marks,
             const grammar::SchemaOptions& options);
  [[nodiscard]] Inside inside_array() const override;
  [[nodiscard]] Inside inside_object(const std::string* name) const override;
  Result<grammar::Dfa> writable(const grammar::Dfa& strings) const override;
  Result<grammar::ExprId> text_of(const grammar::Dfa& strings, uint32_t most) const override;
  Result<grammar::ExprId> member(const std::string& name, grammar::ExprId value) const override;
  Result<grammar::ExprId> members(const grammar::Dfa& names, grammar::ExprId value) const override;

 private:
  struct Deeper {};
  NestedForm(const NestedForm& above, Deeper);
  void set_brackets();

  const Tool* tool_;  // null: of values within the arguments
  const std::string lead_;
  const grammar::ExprId lead_mark_;
  const RawForm texts_;    // strings, as the reader knows
  const RawForm unknown_;  // strings that may be something else
  const std::unique_ptr<const NestedForm> deeper_;
};

}  // namespace gen::calls
