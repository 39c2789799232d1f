// SPDX-License-Identifier: Apache-2.0
// See tagged_form.h.
#include "calls/syntax/tagged_form.h"

#include <utility>
#include <vector>

#include "calls/syntax/free_text.h"
#include "grammar/json/json_text.h"

namespace gen::calls {

using grammar::Both;
using grammar::Dfa;
using grammar::Expressions;
using grammar::ExprId;

namespace {

// Objects and arrays are known by their brackets: which of these texts are JSON takes more than an
// automaton.
constexpr const char* kLikeValues =
    "[ \\t\\r\\n]*([\\[{][^]*|(-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+\\-]?[0-9]+)?|true|false|null)"
    "[ \\t\\r\\n]*)";

std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\^$.*+?()[]{}|/";
  std::string made;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) made += '\\';
    made += c;
  }
  return made;
}

RawForm::Rules rules_of(const ArgumentMarks& form, bool like_no_value) {
  return {.close = std::string(mark_of(form.close)),
          .no_line_end = form.close.starts_with('\n'),
          .no_cdata = form.cdata,
          .like_no_value = like_no_value};
}

RawForm::Rules rules_with_marks(const ArgumentMarks& form, const MarkWriter& marks) {
  RawForm::Rules rules = rules_of(form, false);
  rules.text_lead = marks.text(form.text_middle);
  // That of the value's type, if one names it; else any.
  const auto lead = [&](const char* type) {
    std::vector<ExprId> all = {marks.text(form.middle)};
    if (form.middle.find(type) != std::string::npos) return all[0];
    for (const std::string& middle : form.other_middles) {
      all.push_back(marks.text(middle));
      if (middle.find(type) != std::string::npos) return all.back();
    }
    return marks.expressions().choice(all);
  };
  rules.null_lead = lead("null");
  rules.boolean_lead = lead("boolean");
  rules.number_lead = lead("number");
  rules.array_lead = lead("array");
  rules.object_lead = lead("object");
  return rules;
}

}  // namespace

RawForm::RawForm(Expressions& to, const grammar::SchemaOptions& options, Rules rules)
    : JsonForm(to, options), rules_(std::move(rules)) {
  array_.open = all({rules_.array_lead, array_.open});
  array_.none = all({rules_.array_lead, array_.none});
  object_.open = all({rules_.object_lead, object_.open});
  object_.none = all({rules_.object_lead, object_.none});
  const ExprId leads[] = {rules_.null_lead, rules_.boolean_lead, rules_.boolean_lead};
  for (size_t i = 0; i < words_.size(); ++i) words_[i] = all({leads[i], words_[i]});
}

Result<Dfa> RawForm::writable(const Dfa& strings) const {
  const grammar::DfaFuel& fuel = options_.automata;
  GEN_ASSIGN(const Dfa free, strings_without({&rules_.close, 1}, fuel));
  GEN_ASSIGN(Dfa made, grammar::combine(strings, free, Both::kAnd, fuel));
  const auto leave_out = [&](const std::string& pattern) -> Status {
    GEN_ASSIGN(const Dfa some, strings_like(pattern, fuel));
    GEN_ASSIGN(made, grammar::combine(made, some, Both::kNot, fuel));
    return {};
  };
  if (rules_.no_line_end) GEN_TRY(leave_out("[^]*\\r"));
  if (rules_.no_cdata) GEN_TRY(leave_out("<!\\[CDATA\\[[^]*"));
  if (rules_.like_no_value) GEN_TRY(leave_out(kLikeValues));
  if (!rules_.like_no_tag.empty()) {
    GEN_TRY(leave_out("[ \\t\\r\\n]*" + escaped(rules_.like_no_tag) + "[^]*"));
  }
  return made;
}

Result<ExprId> RawForm::text_of(const Dfa& strings, uint32_t most) const {
  return all({rules_.text_lead, raw_text(to_, strings, most)});
}

TaggedForm::TaggedForm(const ArgumentMarks& form, const Tool& tool, const MarkWriter& marks,
                       const grammar::SchemaOptions& options)
    : JsonForm(marks.expressions(), options),
      form_(form),
      tool_(tool),
      marks_differ_(!form.text_middle.empty()),
      middle_(marks.text(form.middle)),
      close_(marks.text(form.close)),
      texts_(to_, options, rules_of(form, false)),
      unknown_(to_, options, marks_differ_ ? rules_with_marks(form, marks) : rules_of(form, true)) {
  const ExprId open = marks.text(form.open);
  object_ = {open, open, Expressions::kEmpty, Expressions::kEmpty};
}

ValueKind TaggedForm::kind_of(const std::string* name) const {
  return marks_differ_ || name == nullptr ? ValueKind::kUnknown : tool_.kind_of(*name);
}

grammar::ValueForm::Inside TaggedForm::inside_object(const std::string* name) const {
  switch (kind_of(name)) {
    case ValueKind::kText:
      return {&texts_, false};
    case ValueKind::kOther:
      return {nullptr, options_.watched};
    case ValueKind::kUnknown:
      break;
  }
  return {&unknown_, false};
}

ExprId TaggedForm::with_name(ExprId name, ValueKind kind, ExprId value) const {
  const ExprId middle = marks_differ_ ? Expressions::kEmpty : middle_;
  const bool watched = kind == ValueKind::kOther && options_.watched;
  const ExprId begins = to_.bytes(grammar::ByteSet::one(grammar::kBegins));
  const ExprId mark = watched ? to_.repeat(begins, 0, 1) : Expressions::kEmpty;
  return all({name, middle, mark, value, close_});
}

Result<ExprId> TaggedForm::member(const std::string& name, ExprId value) const {
  const std::string_view middle = mark_of(form_.middle);
  const bool ends_early = !middle.empty() && name.find(middle[0]) != std::string::npos;
  if (name.empty() || ends_early || name.find_first_of(" \t\r\n") != std::string::npos) {
    return Expressions::kNever;
  }
  return with_name(to_.literal(name), kind_of(&name), value);
}

Result<ExprId> TaggedForm::members(const Dfa& names, ExprId value) const {
  GEN_ASSIGN(const Dfa words, strings_like("[A-Za-z0-9_.$-]+", options_.automata));
  GEN_ASSIGN(const Dfa both, grammar::combine(names, words, Both::kAnd, options_.automata));
  return with_name(raw_text(to_, both, grammar::kUnbounded), ValueKind::kUnknown, value);
}

}  // namespace gen::calls
