// SPDX-License-Identifier: Apache-2.0
// Where a schema holds other schemas.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/schema/json_value.h"

namespace gen::grammar {

/// What a keyword's value is: one schema, a list of them, a map of names to them, or no schema.
enum class Holds : uint8_t { kValue, kSchema, kList, kMap };

/// Of the keyword of any draft; `items` may have a list.
Holds holds(std::string_view keyword, const JsonValue& value);

}  // namespace gen::grammar
