// SPDX-License-Identifier: Apache-2.0
// See json_form.h.
#include "calls/syntax/json_form.h"

#include "grammar/json/json.h"

namespace gen::calls {

using grammar::Dfa;
using grammar::ExprId;

JsonForm::JsonForm(grammar::Expressions& to, const grammar::SchemaOptions& options)
    : to_(to),
      options_(options),
      texts_(std::make_unique<grammar::StringTexts>(to, options.style.plain)) {
  const ExprId space = grammar::json_space(to, options.style);
  const ExprId comma = all({to.literal(","), space});
  colon_ = all({to.literal(":"), space});
  array_ = {all({to.literal("["), space}), comma, to.literal("]"), to.literal("[]")};
  object_ = {all({to.literal("{"), space}), comma, to.literal("}"), to.literal("{}")};
  set_words("null", "false", "true");
}

void JsonForm::set_words(const char* null, const char* no, const char* yes) {
  words_ = {to_.literal(null), to_.literal(no), to_.literal(yes)};
}

Result<ExprId> JsonForm::text_of(const Dfa& strings, uint32_t most) const {
  return texts_->texts_of(strings, options_.automata, most);
}

Result<ExprId> JsonForm::member(const std::string& name, ExprId value) const {
  return all({texts_->texts_of(name), colon_, value});
}

Result<ExprId> JsonForm::members(const Dfa& names, ExprId value) const {
  GEN_ASSIGN(const ExprId key, texts_->texts_of(names, options_.automata));
  return all({key, colon_, value});
}

}  // namespace gen::calls
