// SPDX-License-Identifier: Apache-2.0
// See vocabularies.h.
#include "grammar/schema/vocabularies.h"

#include <algorithm>
#include <array>

namespace gen::grammar {
namespace {

constexpr std::string_view kHead = "https://json-schema.org/draft/";
constexpr std::array<std::string_view, 9> kKnown = {
    "core",   "applicator",        "validation",       "unevaluated", "meta-data",
    "format", "format-annotation", "format-assertion", "content"};

constexpr std::array<std::string_view, 19> kValidation = {
    "type",     "enum",        "const",       "multipleOf",  "maximum",       "exclusiveMaximum",
    "minimum",  "maxLength",   "minLength",   "pattern",     "maxItems",      "exclusiveMinimum",
    "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties",
    "required"};
constexpr std::array<std::string_view, 16> kApplicator = {"prefixItems",
                                                          "items",
                                                          "additionalItems",
                                                          "contains",
                                                          "properties",
                                                          "patternProperties",
                                                          "additionalProperties",
                                                          "dependentSchemas",
                                                          "propertyNames",
                                                          "if",
                                                          "then",
                                                          "else",
                                                          "allOf",
                                                          "anyOf",
                                                          "oneOf",
                                                          "not"};
constexpr std::array<std::string_view, 2> kUnevaluated = {"unevaluatedItems",
                                                          "unevaluatedProperties"};

}  // namespace

std::string_view leave_out(const JsonValue& list, std::vector<std::string>* keywords) {
  std::vector<std::string_view> present;
  bool is_2019 = false;
  for (const auto& [uri, required] : list.members) {
    const size_t vocab = uri.find("/vocab/");
    const std::string_view name =
        vocab == std::string::npos ? "" : std::string_view(uri).substr(vocab + 7);
    const bool known = uri.compare(0, kHead.size(), kHead) == 0 &&
                       std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end();
    if (known) {
      present.push_back(name);
      is_2019 |= uri.find("2019-09") != std::string::npos;
    } else if (required.is(JsonType::kTrue)) {
      return uri;
    }
  }
  const auto has = [&](std::string_view name) {
    return std::find(present.begin(), present.end(), name) != present.end();
  };
  const auto add = [&](const auto& words) {
    keywords->insert(keywords->end(), words.begin(), words.end());
  };
  if (!has("validation")) {
    add(kValidation);
    keywords->emplace_back("dependentRequired");
  }
  if (!has("applicator")) add(kApplicator);
  // Part of the applicators in 2019-09.
  if (!has(is_2019 ? "applicator" : "unevaluated")) add(kUnevaluated);
  return {};
}

}  // namespace gen::grammar
