// SPDX-License-Identifier: Apache-2.0
// See dict_form.h.
#include "calls/syntax/dict_form.h"

#include "calls/syntax/free_text.h"

namespace gen::calls {

using grammar::Dfa;
using grammar::ExprId;

DictForm::DictForm(const ArgumentMarks& form, const MarkWriter& marks,
                   const grammar::SchemaOptions& options)
    : JsonForm(marks.expressions(), options), quote_(form.quote), mark_(marks.text(form.quote)) {
  array_ = {to_.literal("["), to_.literal(","), to_.literal("]"), to_.literal("[]")};
  object_ = {to_.literal("{"), to_.literal(","), to_.literal("}"), to_.literal("{}")};
}

Result<Dfa> DictForm::writable(const Dfa& strings) const {
  GEN_ASSIGN(const Dfa free, strings_without({&quote_, 1}, options_.automata));
  return grammar::combine(strings, free, grammar::Both::kAnd, options_.automata);
}

Result<ExprId> DictForm::text_of(const Dfa& strings, uint32_t most) const {
  return all({mark_, raw_text(to_, strings, most), mark_});
}

// Names that are no words stand between marks, too.
Result<ExprId> DictForm::member(const std::string& name, ExprId value) const {
  const bool word =
      !name.empty() && name.find_first_of("{}[](),:<>\"' \t\r\n") == std::string::npos;
  if (!word && name.find(quote_) != std::string::npos) return grammar::Expressions::kNever;
  const ExprId around = word ? grammar::Expressions::kEmpty : mark_;
  return all({around, to_.literal(name), around, to_.literal(":"), value});
}

Result<ExprId> DictForm::members(const Dfa& names, ExprId value) const {
  GEN_ASSIGN(const Dfa words, strings_like("[A-Za-z0-9_.$-]+", options_.automata));
  GEN_ASSIGN(const Dfa both,
             grammar::combine(names, words, grammar::Both::kAnd, options_.automata));
  return all({raw_text(to_, both, grammar::kUnbounded), to_.literal(":"), value});
}

}  // namespace gen::calls
