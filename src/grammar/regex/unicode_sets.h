// SPDX-License-Identifier: Apache-2.0
// Characters by Unicode property, by the names that ECMA-262 gives them.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/expression/characters.h"

namespace gen::grammar {

/// The meaning of \p{text}: "Lu", "Letter", "gc=Lu", "Script=Greek", "scx=Grek", "Alphabetic",
/// "Any". None if it is unknown. Surrogates are never members.
std::optional<CharSet> unicode_set(std::string_view text);

}  // namespace gen::grammar
