// SPDX-License-Identifier: Apache-2.0
// Vocabularies of metaschemas ($vocabulary, from 2019-09 on): which keywords their schemas have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema/json_value.h"

namespace gen::grammar {

/// Adds the keywords of vocabularies that are missing from `list`, the value of $vocabulary, to
/// `keywords`. Whether format is asserted is an option, independent of this. Returns a required
/// vocabulary that is unknown, or nothing.
std::string_view leave_out(const JsonValue& list, std::vector<std::string>* keywords);

}  // namespace gen::grammar
