// SPDX-License-Identifier: Apache-2.0
// See tool.h.
#include "calls/tool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/utf8.h"

namespace gen::calls {
namespace {

using grammar::JsonType;
using grammar::JsonValue;

constexpr size_t kMaxNameBytes = 64;
constexpr int kMaxReferences = 16;
constexpr int kMaxSchemas = 1000;  // that are looked at for the kind of a value

bool is_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

std::string shortened(std::string_view text) { return std::string(text.substr(0, 80)); }

// The JSON of a value, members in their order.
void write_json(const JsonValue& value, std::string* out) {
  switch (value.type) {
    case JsonType::kNull:
      *out += "null";
      return;
    case JsonType::kFalse:
      *out += "false";
      return;
    case JsonType::kTrue:
      *out += "true";
      return;
    case JsonType::kNumber:
      *out += value.text;
      return;
    case JsonType::kString:
      *out += json_quote(value.text);
      return;
    case JsonType::kArray: {
      *out += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) *out += ", ";
        write_json(value.items[i], out);
      }
      *out += ']';
      return;
    }
    case JsonType::kObject: {
      *out += '{';
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) *out += ", ";
        *out += json_quote(value.members[i].first) + ": ";
        write_json(value.members[i].second, out);
      }
      *out += '}';
      return;
    }
  }
}

// What "#/$defs/…" points to; null if it is anything else.
const JsonValue* referred(const JsonValue& root, const std::string& reference) noexcept {
  std::string_view rest = reference;
  if (!rest.starts_with('#')) return nullptr;
  rest.remove_prefix(1);
  const JsonValue* at = &root;
  while (!rest.empty()) {
    if (rest.front() != '/') return nullptr;
    rest.remove_prefix(1);
    const std::string_view key = rest.substr(0, rest.find('/'));
    rest.remove_prefix(key.size());
    at = at->is(JsonType::kObject) ? at->find(key) : nullptr;
    if (at == nullptr) return nullptr;
  }
  return at;
}

// Generators of schemas often write the object itself as a definition, {"$ref": …} or {"allOf":
// [{"$ref": …}]}, and templates then show no properties: its members move to the top. False if
// nothing has changed.
bool show_properties(JsonValue* root) {
  if (root->find("properties") != nullptr) return false;
  const JsonValue* at = root;
  for (int step = 0; step < kMaxReferences; ++step) {
    const JsonValue* next = nullptr;
    if (const JsonValue* const to = at->find("$ref"); to != nullptr && to->is(JsonType::kString)) {
      next = referred(*root, to->text);
    } else if (const JsonValue* const all = at->find("allOf");
               all != nullptr && all->is(JsonType::kArray) && all->items.size() == 1) {
      next = &all->items[0];
    }
    if (next == nullptr || !next->is(JsonType::kObject) || next == root) return false;
    at = next;
    if (at->find("properties") != nullptr) break;
  }
  if (at->find("properties") == nullptr) return false;
  JsonValue shown = *at;
  for (const auto& [key, value] : root->members) {
    if (key == "$ref" || key == "allOf" || shown.find(key) != nullptr) continue;
    shown.members.emplace_back(key, value);
  }
  *root = std::move(shown);
  return true;
}

ValueKind joined(ValueKind a, ValueKind b) noexcept { return a == b ? a : ValueKind::kUnknown; }

ValueKind kind_of_type(const JsonValue& type) noexcept {
  if (!type.is(JsonType::kString)) return ValueKind::kUnknown;
  return type.text == "string" ? ValueKind::kText : ValueKind::kOther;
}

ValueKind kind_of_value(const JsonValue& value) noexcept {
  return value.is(JsonType::kString) ? ValueKind::kText : ValueKind::kOther;
}

// Of alternatives; nothing of an empty list.
template <typename F>
ValueKind kind_of_all(const std::vector<JsonValue>& all, F&& kind) {
  std::optional<ValueKind> found;
  for (const JsonValue& one : all) {
    const ValueKind its = kind(one);
    found = found.has_value() ? joined(*found, its) : its;
    if (*found == ValueKind::kUnknown) break;
  }
  return found.value_or(ValueKind::kUnknown);
}

ValueKind kind_within(const JsonValue& root, const JsonValue& schema, int steps,
                      int* left) noexcept {
  if (!schema.is(JsonType::kObject) || steps == 0 || --*left < 0) return ValueKind::kUnknown;
  const auto deeper = [&](const JsonValue& one) { return kind_within(root, one, steps - 1, left); };
  if (const JsonValue* const value = schema.find("const")) return kind_of_value(*value);
  if (const JsonValue* const values = schema.find("enum"); values && values->is(JsonType::kArray)) {
    return kind_of_all(values->items, kind_of_value);
  }
  if (const JsonValue* const type = schema.find("type")) {
    if (type->is(JsonType::kArray)) return kind_of_all(type->items, kind_of_type);
    return kind_of_type(*type);
  }
  if (const JsonValue* const to = schema.find("$ref"); to && to->is(JsonType::kString)) {
    const JsonValue* const target = referred(root, to->text);
    return target == nullptr ? ValueKind::kUnknown : deeper(*target);
  }
  for (const char* const key : {"anyOf", "oneOf"}) {
    const JsonValue* const all = schema.find(key);
    if (all != nullptr && all->is(JsonType::kArray)) return kind_of_all(all->items, deeper);
  }
  if (const JsonValue* const all = schema.find("allOf"); all && all->is(JsonType::kArray)) {
    for (const JsonValue& one : all->items) {
      if (const ValueKind kind = deeper(one); kind != ValueKind::kUnknown) return kind;
    }
  }
  return ValueKind::kUnknown;
}

}  // namespace

ValueKind value_kind(const JsonValue& root, const JsonValue& schema) noexcept {
  int left = kMaxSchemas;
  return kind_within(root, schema, kMaxReferences, &left);
}

ValueKind Tool::kind_of(std::string_view key) const noexcept {
  const JsonValue* const all = schema.find("properties");
  const JsonValue* const one =
      all != nullptr && all->is(JsonType::kObject) ? all->find(key) : nullptr;
  return one == nullptr ? ValueKind::kUnknown : value_kind(schema, *one);
}

Result<Tool> make_tool(std::string_view name, std::string_view description,
                       std::string_view parameters) {
  if (name.empty()) return error(Code::kInvalidArgument, "the name of a tool is empty");
  if (!utf8_valid(name) || !utf8_valid(description) || !utf8_valid(parameters)) {
    return error(Code::kInvalidArgument, "the description of a tool is not UTF-8");
  }
  if (name.size() > kMaxNameBytes) {
    return error(Code::kInvalidArgument, "the name of tool %s has %zu bytes, above %zu",
                 shortened(name).c_str(), name.size(), kMaxNameBytes);
  }
  if (!is_name(name)) {
    return error(Code::kInvalidArgument,
                 "the name of tool '%s' has characters other than letters, digits and _ . -",
                 shortened(name).c_str());
  }
  Tool tool{std::string(name), std::string(description), std::string(parameters)};
  if (parameters.empty()) tool.parameters = R"({"type": "object", "properties": {}})";
  auto schema = grammar::read_json(tool.parameters);
  if (!schema.ok()) {
    if (schema.status().code() != Code::kGrammar) return schema.status();
    return error(Code::kInvalidArgument, "the parameters of tool %s: %s", shortened(name).c_str(),
                 schema.status().message());
  }
  if (!schema->is(JsonType::kObject)) {
    return error(Code::kInvalidArgument, "the parameters of tool %s are no JSON object",
                 shortened(name).c_str());
  }
  if (show_properties(&*schema)) {
    tool.parameters.clear();
    write_json(*schema, &tool.parameters);
  }
  if (const JsonValue* const type = schema->find("type");
      type != nullptr && type->is(JsonType::kString) && type->text != "object") {
    return error(Code::kInvalidArgument, "the parameters of tool %s are of the type %s, not object",
                 shortened(name).c_str(), shortened(type->text).c_str());
  }
  tool.schema = std::move(*schema);
  return tool;
}

Result<Tool> read_tool(std::string_view json) {
  if (!utf8_valid(json)) return error(Code::kInvalidArgument, "a tool is not UTF-8");
  auto read = grammar::read_json(json);
  if (!read.ok()) {
    if (read.status().code() != Code::kGrammar) return read.status();
    return error(Code::kInvalidArgument, "tool: %s", read.status().message());
  }
  const JsonValue* function = &*read;
  if (function->is(JsonType::kObject)) {
    if (const JsonValue* const inner = function->find("function")) function = inner;
  }
  if (!function->is(JsonType::kObject)) {
    return error(Code::kInvalidArgument, "a tool is no JSON object");
  }
  const auto text = [&](const char* key) -> std::string_view {
    const JsonValue* const value = function->find(key);
    return value != nullptr && value->is(JsonType::kString) ? std::string_view(value->text) : "";
  };
  std::string parameters;
  if (const JsonValue* const value = function->find("parameters")) {
    if (!value->is(JsonType::kNull)) write_json(*value, &parameters);
  }
  return make_tool(text("name"), text("description"), parameters);
}

std::string describe_tool(const Tool& tool) {
  return R"({"type": "function", "function": {"name": )" + json_quote(tool.name) +
         R"(, "description": )" + json_quote(tool.description) + R"(, "parameters": )" +
         tool.parameters + "}}";
}

const Tool* find_tool(std::span<const Tool> tools, std::string_view name) noexcept {
  const auto at =
      std::find_if(tools.begin(), tools.end(), [&](const Tool& tool) { return tool.name == name; });
  return at == tools.end() ? nullptr : &*at;
}

}  // namespace gen::calls
