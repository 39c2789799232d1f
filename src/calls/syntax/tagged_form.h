// SPDX-License-Identifier: Apache-2.0
// Arguments between marks, each with its name: strings as they are, other values as JSON. What is
// written is what the reader of such arguments (arguments/argument_reader.h) reads back: where it
// does not know whether a value is a string, no string looks like another value.
#pragma once

#include <string>

#include "calls/call_format.h"
#include "calls/syntax/json_form.h"
#include "calls/syntax/marks.h"
#include "calls/tool.h"

namespace gen::calls {

/// Strings as they are; other values as JSON, if there may be some.
class RawForm final : public JsonForm {
 public:
  struct Rules {
    std::string close;             // does not occur in strings
    bool no_line_end = false;      // a string does not end with a carriage return
    bool no_cdata = false;         // nor begins with <![CDATA[
    bool like_no_value = false;    // no string looks like another JSON value
    std::string like_no_tag = {};  // no string begins with it, behind white space
    grammar::ExprId text_lead = grammar::Expressions::kEmpty;  // before strings
    // Before other values.
    grammar::ExprId null_lead = grammar::Expressions::kEmpty;
    grammar::ExprId boolean_lead = grammar::Expressions::kEmpty;
    grammar::ExprId number_lead = grammar::Expressions::kEmpty;
    grammar::ExprId array_lead = grammar::Expressions::kEmpty;
    grammar::ExprId object_lead = grammar::Expressions::kEmpty;
  };
  RawForm(grammar::Expressions& to, const grammar::SchemaOptions& options, Rules rules);
  [[nodiscard]] Inside inside_array() const override { return {nullptr, false}; }
  [[nodiscard]] Inside inside_object(const std::string* /*name*/) const override {
    return {nullptr, false};
  }
  Result<grammar::Dfa> writable(const grammar::Dfa& strings) const override;
  Result<grammar::ExprId> text_of(const grammar::Dfa& strings, uint32_t most) const override;
  [[nodiscard]] grammar::ExprId number(grammar::ExprId text) const override {
    return all({rules_.number_lead, text});
  }

 private:
  const Rules rules_;
};

class TaggedForm final : public JsonForm {
 public:
  /// All outlive it.
  TaggedForm(const ArgumentMarks& form, const Tool& tool, const MarkWriter& marks,
             const grammar::SchemaOptions& options);
  [[nodiscard]] Inside inside_object(const std::string* name) const override;
  Result<grammar::Dfa> writable(const grammar::Dfa& /*strings*/) const override {
    return grammar::Dfa();
  }
  Result<grammar::ExprId> member(const std::string& name, grammar::ExprId value) const override;
  Result<grammar::ExprId> members(const grammar::Dfa& names, grammar::ExprId value) const override;

 private:
  [[nodiscard]] ValueKind kind_of(const std::string* name) const;
  [[nodiscard]] grammar::ExprId with_name(grammar::ExprId name, ValueKind kind,
                                          grammar::ExprId value) const;

  const ArgumentMarks& form_;
  const Tool& tool_;
  const bool marks_differ_;  // those before strings and before other values
  const grammar::ExprId middle_;
  const grammar::ExprId close_;
  RawForm texts_;    // values that are strings, as the reader knows
  RawForm unknown_;  // values that may be
};

}  // namespace gen::calls
