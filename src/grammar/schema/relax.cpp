// SPDX-License-Identifier: Apache-2.0
// Schemas that ask for less, see relax.h. What is a schema and what a name or a value is told by
// the keyword it stands in; where a keyword holds something else than it should, the compiler says
// so.
#include "grammar/schema/relax.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gen::grammar {
namespace {

using Names = std::string_view;

constexpr std::array<Names, 26> kScalars = {"type",
                                            "enum",
                                            "const",
                                            "multipleOf",
                                            "maximum",
                                            "minimum",
                                            "exclusiveMaximum",
                                            "exclusiveMinimum",
                                            "maxLength",
                                            "minLength",
                                            "pattern",
                                            "format",
                                            "maxItems",
                                            "minItems",
                                            "uniqueItems",
                                            "maxContains",
                                            "minContains",
                                            "maxProperties",
                                            "minProperties",
                                            "required",
                                            "dependentRequired",
                                            "items",
                                            "dependencies",
                                            "contains",
                                            "prefixItems",
                                            "additionalItems"};
// Of a schema, a list of them, or a map of names to them.
constexpr std::array<Names, 13> kOne = {"items",
                                        "additionalItems",
                                        "contains",
                                        "additionalProperties",
                                        "propertyNames",
                                        "not",
                                        "if",
                                        "then",
                                        "else",
                                        "unevaluatedItems",
                                        "unevaluatedProperties",
                                        "contentSchema",
                                        "extends"};
constexpr std::array<Names, 5> kLists = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
constexpr std::array<Names, 6> kMaps = {
    "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"};

template <size_t N>
bool in(const std::array<Names, N>& list, Names name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string escaped(Names name) {
  std::string made;
  for (const char c : name) {
    if (c == '~') {
      made += "~0";
    } else if (c == '/') {
      made += "~1";
    } else {
      made += c;
    }
  }
  return made;
}

struct Open {
  JsonValue* schema;
  std::string pointer;
};

}  // namespace

bool is_asking_keyword(Names name) {
  if (name.empty() || name[0] == '$' || name == "definitions" || name == "contentSchema") {
    return false;
  }
  return in(kScalars, name) || in(kOne, name) || in(kLists, name) || in(kMaps, name);
}

void relax(JsonValue* schema, const Relaxing& how, std::vector<std::string>* told) {
  std::vector<Open> open = {{schema, ""}};
  while (!open.empty()) {
    const Open now = std::move(open.back());
    open.pop_back();
    if (!now.schema->is(JsonType::kObject)) continue;
    for (auto& [name, value] : now.schema->members) {
      const std::string at = now.pointer + "/" + escaped(name);
      if (in(kOne, name) && value.is(JsonType::kObject)) open.push_back({&value, at});
      if (in(kLists, name) && value.is(JsonType::kArray)) {
        for (size_t i = 0; i < value.items.size(); ++i) {
          open.push_back({&value.items[i], at + "/" + std::to_string(i)});
        }
      }
      if (in(kMaps, name) && value.is(JsonType::kObject)) {
        for (auto& [key, member] : value.members)
          open.push_back({&member, at + "/" + escaped(key)});
      }
      const bool ignored =
          std::find(how.ignored.begin(), how.ignored.end(), name) != how.ignored.end();
      if (ignored) {
        told->push_back(at + ": ignored");
        name.insert(name.begin(), kIgnoredMark);
      } else if (how.one_of_as_any_of && name == "oneOf") {
        told->push_back(at + ": as anyOf");
      }
    }
  }
  std::sort(told->begin(), told->end());
}

}  // namespace gen::grammar
