// SPDX-License-Identifier: Apache-2.0
// See nested_form.h.
#include "calls/syntax/nested_form.h"

namespace gen::calls {

using grammar::Dfa;
using grammar::Expressions;
using grammar::ExprId;

NestedForm::NestedForm(const ArgumentMarks& form, const Tool& tool, const MarkWriter& marks,
                       const grammar::SchemaOptions& options)
    : JsonForm(marks.expressions(), options),
      tool_(&tool),
      lead_(form.lead),
      lead_mark_(marks.text(form.lead)),
      texts_(to_, options, {.close = lead_ + "</"}),
      unknown_(to_, options,
               {.close = lead_ + "</", .like_no_value = true, .like_no_tag = lead_ + "<"}),
      deeper_(new NestedForm(*this, Deeper())) {
  set_brackets();
  object_.none = Expressions::kEmpty;
}

NestedForm::NestedForm(const NestedForm& above, Deeper /*tag*/)
    : JsonForm(above.to_, above.options_),
      tool_(nullptr),
      lead_(above.lead_),
      lead_mark_(above.lead_mark_),
      texts_(to_, options_, {.close = lead_ + "</"}),
      unknown_(to_, options_,
               {.close = lead_ + "</", .like_no_value = true, .like_no_tag = lead_ + "<"}) {
  set_brackets();
}

void NestedForm::set_brackets() {
  const ExprId open = all({lead_mark_, to_.literal("<")});
  object_ = {open, open, Expressions::kEmpty, to_.literal("{}")};
  const ExprId item = all({open, to_.literal("item>")});
  const ExprId item_end = all({lead_mark_, to_.literal("</item>")});
  array_ = {item, all({item_end, item}), item_end, to_.literal("[]")};
}

grammar::ValueForm::Inside NestedForm::inside_array() const { return {this, false}; }

grammar::ValueForm::Inside NestedForm::inside_object(const std::string* name) const {
  if (tool_ == nullptr) return {this, false};
  const bool text = name != nullptr && tool_->kind_of(*name) == ValueKind::kText;
  if (text) return {&texts_, false};
  return {deeper_.get(), false};
}

Result<Dfa> NestedForm::writable(const Dfa& strings) const { return unknown_.writable(strings); }

Result<ExprId> NestedForm::text_of(const Dfa& strings, uint32_t most) const {
  return unknown_.text_of(strings, most);
}

Result<ExprId> NestedForm::member(const std::string& name, ExprId value) const {
  if (name.empty() || name.find_first_of("<>/ \t\r\n") != std::string::npos) {
    return Expressions::kNever;
  }
  const ExprId tag = to_.literal(name + ">");
  return all({tag, value, lead_mark_, to_.literal("</"), tag});
}

Result<ExprId> NestedForm::members(const Dfa& /*names*/, ExprId /*value*/) const {
  return Expressions::kNever;
}

}  // namespace gen::calls
