// SPDX-License-Identifier: Apache-2.0
// See python_form.h.
#include "calls/syntax/python_form.h"

#include "calls/syntax/free_text.h"
#include "grammar/json/json.h"

namespace gen::calls {

using grammar::Dfa;
using grammar::Expressions;
using grammar::ExprId;

PythonValues::PythonValues(Expressions& to, const grammar::SchemaOptions& options)
    : JsonForm(to, options) {
  set_words("None", "False", "True");
}

PythonForm::PythonForm(Expressions& to, const grammar::SchemaOptions& options)
    : JsonForm(to, options), values_(to, options) {
  const ExprId space = grammar::json_space(to, options.style);
  object_ = {Expressions::kEmpty, all({to.literal(","), space}), Expressions::kEmpty,
             Expressions::kEmpty};
}

grammar::ValueForm::Inside PythonForm::inside_object(const std::string* /*name*/) const {
  return {&values_, false};
}

Result<ExprId> PythonForm::member(const std::string& name, ExprId value) const {
  if (name.empty() || name.find_first_of("=()[]{},\"' \t\r\n") != std::string::npos) {
    return Expressions::kNever;
  }
  return all({to_.literal(name), to_.literal("="), value});
}

Result<ExprId> PythonForm::members(const Dfa& names, ExprId value) const {
  GEN_ASSIGN(const Dfa plain, strings_like("[A-Za-z_][A-Za-z0-9_]*", options_.automata));
  GEN_ASSIGN(const Dfa both,
             grammar::combine(names, plain, grammar::Both::kAnd, options_.automata));
  return all({raw_text(to_, both, grammar::kUnbounded), to_.literal("="), value});
}

}  // namespace gen::calls
