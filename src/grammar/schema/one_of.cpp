// SPDX-License-Identifier: Apache-2.0
// oneOf: which of its schemas may hold together. Schemas that list their values, as in documented
// enumerations, are compared by these, so that a long list needs no pairwise comparison.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "grammar/schema/clause_maker.h"

namespace gen::grammar {
namespace {

using Forms = std::vector<std::string>;

// A canonical form of each value; nothing for a value that has none.
std::optional<std::string> form_of(const JsonValue& value) {
  switch (value.type) {
    case JsonType::kArray:
    case JsonType::kObject:
      return std::nullopt;
    case JsonType::kNumber: {
      auto number = decimal_of(value.text);
      if (!number.ok()) return std::nullopt;
      return (number->negative ? "-" : "") + number->digits + "e" +
             std::to_string(number->exponent);
    }
    default:
      return value.text;
  }
}

// The forms of the values of this type that the schema lists; nothing if it allows others.
std::optional<Forms> listed(JsonType type, const JsonValue& schema, Draft draft) {
  if (!schema.is(JsonType::kObject)) return std::nullopt;
  if (draft <= Draft::k7 && schema.find("$ref") != nullptr) return std::nullopt;
  Forms made;
  const auto add = [&](const JsonValue& value) {
    if (value.type != type) return true;
    std::optional<std::string> form = form_of(value);
    if (form) made.push_back(std::move(*form));
    return form.has_value();
  };
  const JsonValue* single = draft == Draft::k4 ? nullptr : schema.find("const");
  if (single != nullptr) return add(*single) ? std::optional(made) : std::nullopt;
  const JsonValue* values = schema.find("enum");
  if (values == nullptr || !values->is(JsonType::kArray)) return std::nullopt;
  if (!std::all_of(values->items.begin(), values->items.end(), add)) return std::nullopt;
  std::sort(made.begin(), made.end());
  made.erase(std::unique(made.begin(), made.end()), made.end());
  return made;
}

}  // namespace

Result<std::vector<ClauseMaker::Alternative>> ClauseMaker::alternatives(const Keyword& k,
                                                                        const Literals& all) {
  std::vector<Alternative> made;
  std::vector<std::optional<Forms>> values;
  std::vector<size_t> open;  // schemas that list no values
  std::unordered_map<std::string, std::vector<size_t>> by_value;
  for (const Literal one : all) {
    if (quick(k.type, one) == Quick::kNever) continue;
    std::optional<Forms> own = listed(k.type, *one.schema, document_.draft_of(one.schema));
    if (own && own->empty()) continue;
    if (!own) open.push_back(made.size());
    for (const std::string& value : own ? *own : Forms()) by_value[value].push_back(made.size());
    made.push_back({one, {}});
    values.push_back(std::move(own));
  }
  for (size_t i = 0; i < made.size(); ++i) {
    std::vector<size_t>& beside = made[i].beside;
    const auto add = [&](size_t j) -> Status {
      if (i != j) beside.push_back(j);
      return spend(k.schema);
    };
    if (!values[i]) {
      for (size_t j = 0; j < made.size(); ++j) GEN_TRY(add(j));
      continue;
    }
    for (const size_t j : open) GEN_TRY(add(j));
    for (const std::string& value : *values[i]) {
      for (const size_t j : by_value[value]) GEN_TRY(add(j));
    }
    std::sort(beside.begin(), beside.end());
    beside.erase(std::unique(beside.begin(), beside.end()), beside.end());
  }
  return made;
}

// Exactly one: if two cannot hold together, the other need not be excluded.
Result<Options> ClauseMaker::one_of(const Keyword& k) {
  GEN_ASSIGN(const Literals all, schema_list(k));
  GEN_ASSIGN(const std::vector<Alternative> some, alternatives(k, all));
  Options options;
  for (const Alternative& one : some) {
    Option option;
    option.literals.push_back(one.literal);
    for (const size_t j : one.beside) {
      const Literal other = some[j].literal;
      if (depth_ < 3) {
        ++depth_;
        auto both = clauses(k.type, {one.literal, other});
        --depth_;
        if (!both.ok()) return both.status();
        if (both->empty()) continue;
      }
      option.literals.push_back(!other);
    }
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace gen::grammar
