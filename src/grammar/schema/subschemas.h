// SPDX-License-Identifier: Apache-2.0
// The positions of subschemas in a schema.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/schema/json_value.h"

namespace gen::grammar {

/// The kind of a keyword's value: one schema, a list of schemas, a map of names to schemas, or no
/// schema.
enum class Holds : uint8_t { kValue, kSchema, kList, kMap };

/// For keywords of any draft; `items` may have a list.
Holds holds(std::string_view keyword, const JsonValue& value);

}  // namespace gen::grammar
