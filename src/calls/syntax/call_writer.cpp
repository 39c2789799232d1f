// SPDX-License-Identifier: Apache-2.0
// See call_writer.h.
#include "calls/syntax/call_writer.h"

#include <utility>

#include "calls/syntax/free_text.h"
#include "grammar/json/json.h"

namespace gen::calls {

using grammar::Expressions;
using grammar::ExprId;

namespace {

constexpr const char* kDigits = "0|[1-9][0-9]{0,8}";

}  // namespace

CallWriter::CallWriter(const CallFormat& format, std::vector<const Tool*> tools,
                       const MarkWriter& marks, const grammar::SchemaOptions& schemas)
    : ExpressionParts(marks.expressions()),
      format_(format),
      tools_(std::move(tools)),
      marks_(marks),
      schemas_(schemas),
      writer_(format, marks, schemas) {}

Status CallWriter::write_arguments() {
  const auto like = [&](const char* pattern) -> Result<ExprId> {
    GEN_ASSIGN(const grammar::Dfa made, strings_like(pattern, schemas_.automata));
    return grammar::expression_of(to_, made);
  };
  GEN_ASSIGN(number_, like(kDigits));
  GEN_ASSIGN(id_, like(format_.ids == IdForm::kNine     ? "[A-Za-z0-9]{9}"
                       : format_.ids == IdForm::kNumber ? kDigits
                                                        : "[A-Za-z0-9_\\-]{1,40}"));
  space_ = grammar::json_space(to_, schemas_.style);
  for (const Tool* const tool : tools_) {
    GEN_ASSIGN(const ExprId made, writer_.write(*tool));
    arguments_.push_back(shared(made));
  }
  return {};
}

ExprId CallWriter::name_of(size_t tool) const { return to_.literal(tools_[tool]->name); }

ExprId CallWriter::object(size_t tool) const {
  const Keys& keys = format_.keys;
  const auto text = [&](ExprId inside) {
    return all({to_.literal("\""), inside, to_.literal("\"")});
  };
  const auto member = [&](ExprId name, ExprId value) {
    return all({text(name), space_, to_.literal(":"), space_, value, space_});
  };
  const ExprId comma = all({to_.literal(","), space_});
  ExprId members = 0;
  if (keys.name.empty()) {
    members = member(name_of(tool), arguments_[tool]);
  } else {
    members = all({member(to_.literal(keys.name), text(name_of(tool))), comma,
                   member(to_.literal(keys.arguments), arguments_[tool])});
  }
  if (!keys.id.empty()) {
    const ExprId id = member(to_.literal(keys.id), text(id_));
    members = any({all({id, comma, members}), all({members, comma, id})});
  }
  return all({to_.literal("{"), space_, members, to_.literal("}")});
}

ExprId CallWriter::part(const Part& part, size_t tool) const {
  switch (part.field) {
    case Field::kText:
      return marks_.text(part.text);
    case Field::kName:
      return name_of(tool);
    case Field::kIndexedName:
      return all({to_.literal("functions."), name_of(tool), to_.literal(":"), number_});
    case Field::kId:
      return id_;
    case Field::kArguments:
      return arguments_[tool];
    case Field::kObject:
      return object(tool);
  }
  return Expressions::kNever;
}

ExprId CallWriter::call(size_t tool, size_t without) const {
  std::vector<ExprId> parts;
  for (size_t i = 0; i < format_.call.size(); ++i) {
    const Part& one = format_.call[i];
    const bool cut = i == 0 && one.field == Field::kText;
    parts.push_back(cut ? marks_.text(std::string_view(one.text).substr(without))
                        : part(one, tool));
  }
  return to_.sequence(parts);
}

ExprId CallWriter::any_call(size_t without) const {
  std::vector<ExprId> calls;
  for (size_t tool = 0; tool < tools_.size(); ++tool) calls.push_back(call(tool, without));
  return to_.choice(calls);
}

ExprId CallWriter::section_rest(size_t without, bool several) const {
  several = several && (format_.several || !format_.between.empty());
  const ExprId first = any_call(without);
  const ExprId close = marks_.text(format_.section.close);
  if (!several) return all({first, close});
  const ExprId next = all({marks_.text(format_.between), any_call(0)});
  return all({first, to_.repeat(next, 0, grammar::kUnbounded), close});
}

}  // namespace gen::calls
