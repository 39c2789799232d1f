// SPDX-License-Identifier: Apache-2.0
// See tool_arguments.h.
#include "agent/tool_arguments.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "grammar/grammar.h"
#include "grammar/mask/vocabulary.h"
#include "grammar/matcher/matcher.h"
#include "grammar/schema/json_value.h"

namespace gen::agent {
namespace {

using grammar::JsonType;
using grammar::JsonValue;

constexpr int kMaxSteps = 16;      // through "$ref" and "allOf"
constexpr int kMaxSchemas = 1000;  // that are looked at, since an "allOf" branches

// What "#/definitions/…" points to; null if it is anything else.
const JsonValue* referred(const JsonValue& root, std::string_view reference) noexcept {
  if (!reference.starts_with('#')) return nullptr;
  const JsonValue* at = &root;
  for (reference.remove_prefix(1); !reference.empty() && at != nullptr;) {
    if (reference.front() != '/') return nullptr;
    reference.remove_prefix(1);
    const std::string_view key = reference.substr(0, reference.find('/'));
    reference.remove_prefix(key.size());
    at = at->is(JsonType::kObject) ? at->find(key) : nullptr;
  }
  return at;
}

// A member that the schema requires at its top and the arguments lack; null if there is none, or if
// it lies too far away: the grammar refuses the arguments all the same.
const std::string* missing_member(const JsonValue& root, const JsonValue& schema,
                                  const JsonValue& arguments, int steps, int* left) noexcept {
  if (!schema.is(JsonType::kObject) || steps == 0 || --*left < 0) return nullptr;
  if (const JsonValue* const names = schema.find("required");
      names && names->is(JsonType::kArray)) {
    for (const JsonValue& name : names->items) {
      if (name.is(JsonType::kString) && arguments.find(name.text) == nullptr) return &name.text;
    }
  }
  if (const JsonValue* const to = schema.find("$ref"); to && to->is(JsonType::kString)) {
    const JsonValue* const target = referred(root, to->text);
    return target != nullptr ? missing_member(root, *target, arguments, steps - 1, left) : nullptr;
  }
  const JsonValue* const all = schema.find("allOf");
  if (all == nullptr || !all->is(JsonType::kArray)) return nullptr;
  for (const JsonValue& one : all->items) {
    const std::string* const name = missing_member(root, one, arguments, steps - 1, left);
    if (name != nullptr) return name;
  }
  return nullptr;
}

// Of the first byte that cannot follow; the size if there is none. Halves what is accepted, so that
// the work is linear.
Result<size_t> first_misfit(grammar::Matcher* matcher, std::string_view text) {
  size_t at = 0;
  for (size_t part = text.size(); part > 0 && at < text.size();) {
    part = std::min(part, text.size() - at);
    GEN_ASSIGN(const bool fits, matcher->accept_bytes(text.substr(at, part)));
    if (fits) {
      at += part;
    } else {
      part /= 2;
    }
  }
  return at;
}

// The name of the last member at depth 1 that begins before `at`; empty if there is none. `text` is
// valid JSON.
std::string_view member_at(std::string_view text, size_t at) noexcept {
  int depth = 0;
  std::string_view name;
  bool named = false;  // the name of the next value was read
  for (size_t i = 0; i < text.size() && i <= at; ++i) {
    const char c = text[i];
    if (c == '"') {
      const size_t begin = i + 1;
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
      if (depth == 1 && !named) {
        name = text.substr(begin, std::min(i, text.size()) - begin);
        named = true;
      }
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 1) {
      named = false;
    }
  }
  return name.substr(0, 64);
}

std::string_view excerpt(std::string_view text, size_t at) noexcept {
  const std::string_view rest = text.substr(at, 24);
  return rest.substr(0, utf8_valid_prefix(rest));
}

}  // namespace

Result<ArgumentCheck> ArgumentCheck::of(const calls::Tool& tool) {
  grammar::SchemaOptions options;
  options.style = {};
  auto made = grammar::Grammar::from_json_schema(tool.parameters, options);
  if (!made.ok()) {
    const Code code = made.status().code();
    if (code != Code::kGrammar && code != Code::kUnsupported) return made.status();
    return error(Code::kInvalidArgument, "the schema of tool \"%s\": %s", tool.name.c_str(),
                 made.status().message());
  }
  GEN_ASSIGN(const auto no_tokens, grammar::Vocabulary::create({}, {}));
  GEN_ASSIGN(auto over, (*made)->once_over(no_tokens));
  return ArgumentCheck(std::move(over));
}

Result<std::string> ArgumentCheck::fault(const calls::Tool& tool,
                                         std::string_view arguments) const {
  const std::string whose = "arguments of tool \"" + tool.name + "\": ";
  auto read = grammar::read_json(arguments);
  if (!read.ok()) {
    if (read.status().code() != Code::kGrammar) return read.status();
    return whose + read.status().message();
  }
  if (!read->is(JsonType::kObject)) return whose + "they are no JSON object";
  int left = kMaxSchemas;
  if (const std::string* const name =
          missing_member(tool.schema, tool.schema, *read, kMaxSteps, &left)) {
    return whose + "\"" + *name + "\" is missing";
  }
  GEN_ASSIGN(auto matcher, grammar::Matcher::create(grammar_));
  auto fits = first_misfit(&matcher, arguments);
  if (!fits.ok()) {
    if (fits.status().code() != Code::kGrammar) return fits.status();
    return whose + fits.status().message();
  }
  if (*fits == arguments.size() && matcher.is_complete()) return std::string();
  const std::string_view name = member_at(arguments, *fits);
  std::string text = whose + "they do not fit its schema at byte " + std::to_string(*fits);
  if (!name.empty()) text.append(", member \"").append(name).append("\"");
  const std::string_view rest = excerpt(arguments, *fits);
  if (!rest.empty()) text.append(": ").append(rest);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace gen::agent
