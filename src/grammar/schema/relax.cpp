// SPDX-License-Identifier: Apache-2.0
// Relaxes schemas, see relax.h. The surrounding keyword decides whether a value is a schema, a name
// or data; where a keyword has a value of the wrong kind, the compiler reports it.
#include "grammar/schema/relax.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/schema/subschemas.h"

namespace gen::grammar {
namespace {

// Keywords without subschemas.
constexpr std::array<std::string_view, 21> kScalars = {"type",
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
                                                       "dependentRequired"};

std::string escaped(std::string_view name) {
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

bool is_asking_keyword(std::string_view name) {
  if (name.empty() || name[0] == '$' || name == "definitions" || name == "contentSchema") {
    return false;
  }
  return std::find(kScalars.begin(), kScalars.end(), name) != kScalars.end() ||
         holds(name, JsonValue()) != Holds::kValue;
}

size_t relax(JsonValue* schema, const Relaxing& how, std::vector<std::string>* told) {
  std::vector<Open> open = {{schema, ""}};
  size_t count = 0;
  while (!open.empty()) {
    const Open now = std::move(open.back());
    open.pop_back();
    ++count;
    if (!now.schema->is(JsonType::kObject)) continue;
    for (auto& [name, value] : now.schema->members) {
      const std::string at = now.pointer + "/" + escaped(name);
      const Holds what = holds(name, value);
      if (what == Holds::kSchema) open.push_back({&value, at});
      if (what == Holds::kList) {
        for (size_t i = 0; i < value.items.size(); ++i) {
          open.push_back({&value.items[i], at + "/" + std::to_string(i)});
        }
      }
      if (what == Holds::kMap) {
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
  return count;
}

}  // namespace gen::grammar
