// SPDX-License-Identifier: Apache-2.0
// See subschemas.h.
#include "grammar/schema/subschemas.h"

#include <algorithm>
#include <iterator>

namespace gen::grammar {

Holds holds(std::string_view keyword, const JsonValue& value) {
  static constexpr std::string_view kMaps[] = {
      "$defs",      "definitions",       "dependencies",
      "properties", "patternProperties", "dependentSchemas"};
  static constexpr std::string_view kLists[] = {"allOf", "anyOf", "oneOf", "prefixItems"};
  static constexpr std::string_view kSchemas[] = {"additionalItems",
                                                  "additionalProperties",
                                                  "contains",
                                                  "contentSchema",
                                                  "else",
                                                  "if",
                                                  "items",
                                                  "not",
                                                  "propertyNames",
                                                  "then",
                                                  "unevaluatedItems",
                                                  "unevaluatedProperties"};
  const auto among = [&](auto& list) {
    return std::find(std::begin(list), std::end(list), keyword) != std::end(list);
  };
  if (keyword == "items" && value.is(JsonType::kArray)) return Holds::kList;
  if (among(kSchemas)) return Holds::kSchema;
  if (among(kLists)) return Holds::kList;
  return among(kMaps) ? Holds::kMap : Holds::kValue;
}

}  // namespace gen::grammar
