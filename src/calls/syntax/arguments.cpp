// SPDX-License-Identifier: Apache-2.0
// See arguments.h.
#include "calls/syntax/arguments.h"

#include <algorithm>
#include <string_view>

#include "calls/syntax/dict_form.h"
#include "calls/syntax/nested_form.h"
#include "calls/syntax/python_form.h"
#include "calls/syntax/tagged_form.h"
#include "grammar/json/json_text.h"

namespace gen::calls {
namespace {

using grammar::Expressions;
using grammar::ExprId;
using grammar::JsonType;
using grammar::JsonValue;

// Keywords that may list members elsewhere than in "properties".
constexpr std::string_view kOpenKeywords[] = {"additionalProperties",
                                              "unevaluatedProperties",
                                              "$ref",
                                              "$dynamicRef",
                                              "$recursiveRef",
                                              "allOf",
                                              "anyOf",
                                              "oneOf",
                                              "if",
                                              "dependentSchemas",
                                              "dependencies"};

// The schema that arguments follow: of an object, which lists its members.
std::string text_of_schema(const Tool& tool) {
  const JsonValue& schema = tool.schema;
  std::string more;
  const bool open = std::any_of(std::begin(kOpenKeywords), std::end(kOpenKeywords),
                                [&](auto key) { return schema.find(key) != nullptr; });
  if (schema.find("properties") != nullptr && !open) more += R"("additionalProperties": false)";
  const JsonValue* const type = schema.find("type");
  if (type == nullptr) more += std::string(more.empty() ? "" : ", ") + R"("type": "object")";
  std::string text = tool.parameters;
  if (!more.empty() && !schema.members.empty()) more += ", ";
  text.insert(text.find('{') + 1, more);
  if (type == nullptr || type->text == "object") return text;
  // As a document of its own, so that its references point into it.
  const bool has_id = schema.find("$id") != nullptr && schema.find("$id")->is(JsonType::kString);
  if (!has_id) text.insert(text.find('{') + 1, R"("$id": "tool:schema", )");
  const std::string id = has_id ? schema.find("$id")->text : "tool:schema";
  return R"({"type": "object", "$ref": ")" + id + R"(", "$defs": {"tool": )" + text + "}}";
}

}  // namespace

std::unique_ptr<grammar::ValueForm> ArgumentWriter::form_of(const Tool& tool) const {
  switch (format_.syntax) {
    case Syntax::kJson:
      return nullptr;
    case Syntax::kTagged:
      return std::make_unique<TaggedForm>(format_.marks, tool, marks_, options_);
    case Syntax::kDict:
      return std::make_unique<DictForm>(format_.marks, marks_, options_);
    case Syntax::kPython:
      return std::make_unique<PythonForm>(marks_.expressions(), options_);
    case Syntax::kNested:
      return std::make_unique<NestedForm>(format_.marks, tool, marks_, options_);
  }
  return nullptr;
}

Result<ExprId> ArgumentWriter::write(const Tool& tool) {
  Expressions& to = marks_.expressions();
  const std::unique_ptr<grammar::ValueForm> form = form_of(tool);
  grammar::SchemaOptions options = options_;
  options.form = form.get();
  options.space_around = false;
  grammar::SchemaReport report;
  auto made = grammar::schema_expression(text_of_schema(tool), options, to, &report);
  if (!made.ok() && made.status().code() == Code::kGrammar) {
    return error(Code::kGrammar, "tool %s: %s", tool.name.c_str(), made.status().message());
  }
  if (!made.ok()) return made.status();
  report_.items |= report.items;
  report_.any_order |= report.any_order;
  for (const std::string& line : report.relaxed) {
    relaxed_.push_back("tool " + tool.name + ": " + line);
  }
  if (form != nullptr || !options.watched) return *made;
  const ExprId begins = to.bytes(grammar::ByteSet::one(grammar::kBegins));
  const ExprId parts[] = {to.repeat(begins, 0, 1), *made};
  return to.sequence(parts);
}

}  // namespace gen::calls
