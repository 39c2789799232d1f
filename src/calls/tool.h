// SPDX-License-Identifier: Apache-2.0
// Tools that a model may call: name, description and the JSON Schema of the arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/schema/json_value.h"

namespace gen::calls {

/// What a schema says of a value's type.
enum class ValueKind : uint8_t {
  kText,     // a string, and nothing else
  kOther,    // never a string
  kUnknown,  // either, or the schema does not say
};

struct Tool {
  std::string name;
  std::string description;
  std::string parameters;          // the schema's JSON; of an object
  grammar::JsonValue schema = {};  // the same, read

  /// Of the member `key` of the arguments.
  [[nodiscard]] ValueKind kind_of(std::string_view key) const noexcept;
};

/// What the schema says of its values; follows "$ref" within `root`, up to 16 steps.
ValueKind value_kind(const grammar::JsonValue& root, const grammar::JsonValue& schema) noexcept;

using Tools = std::vector<Tool>;

/// kInvalidArgument, naming the fault, for an empty name, one with characters other than letters,
/// digits and _ . - or longer than 64, for text that is not UTF-8, and for parameters that are no
/// JSON object. Empty parameters: a function without any.
Result<Tool> make_tool(std::string_view name, std::string_view description,
                       std::string_view parameters);

/// Of a description in OpenAI's form: {"type": "function", "function": {…}}, or its inner object.
Result<Tool> read_tool(std::string_view json);

/// The description in OpenAI's form.
std::string describe_tool(const Tool& tool);

/// Null if there is none.
const Tool* find_tool(std::span<const Tool> tools, std::string_view name) noexcept;

}  // namespace gen::calls
