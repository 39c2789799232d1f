// SPDX-License-Identifier: Apache-2.0
// Schemas that ask for less, as options say: keywords that are not looked at, and oneOf as anyOf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema/json_value.h"

namespace gen::grammar {

/// Before the name of a keyword that is not looked at; references go through it all the same. It is
/// no UTF-8, so that no name in a schema's text begins with it.
inline constexpr char kIgnoredMark = '\xFE';

/// Whether it is a keyword of some draft that asks something of values, so that it can be ignored.
bool is_asking_keyword(std::string_view name);

/// What `relax` changes.
struct Relaxing {
  std::vector<std::string> ignored;
  bool one_of_as_any_of = false;  // only told; the keyword stays
};

/// Marks the ignored keywords of `schema` and the schemas in it. `told` gets a line for each place:
/// its JSON pointer and what became of it.
void relax(JsonValue* schema, const Relaxing& how, std::vector<std::string>* told);

}  // namespace gen::grammar
