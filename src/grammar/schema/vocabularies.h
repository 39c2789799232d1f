// SPDX-License-Identifier: Apache-2.0
// Vocabularies of metaschemas ($vocabulary, from 2019-09 on): which keywords a schema has that is
// written for one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema/json_value.h"

namespace gen::grammar {

/// Adds the keywords of vocabularies that are not in `list`, the value of $vocabulary, to
/// `keywords`. Whether format asks for anything is an option and not taken from there. Returns a
/// vocabulary that is required and not known, or nothing.
std::string_view leave_out(const JsonValue& list, std::vector<std::string>* keywords);

}  // namespace gen::grammar
