// SPDX-License-Identifier: Apache-2.0
// Relaxes schemas according to options: ignored keywords, and oneOf as anyOf.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema/json_value.h"

namespace gen::grammar {

/// Prefix of ignored keywords; references still pass through them. It is not UTF-8, so no name in a
/// schema's text begins with it.
inline constexpr char kIgnoredMark = '\xFE';

/// Whether it is a keyword of some draft that constrains values, so that it can be ignored.
bool is_asking_keyword(std::string_view name);

/// What `relax` changes.
struct Relaxing {
  std::vector<std::string> ignored;
  bool one_of_as_any_of = false;  // only reported; the keyword stays
};

/// Marks the ignored keywords of `schema` and its subschemas. `told` gets a line per keyword: its
/// JSON pointer and what was done. Returns the number of schemas.
size_t relax(JsonValue* schema, const Relaxing& how, std::vector<std::string>* told);

}  // namespace gen::grammar
