// SPDX-License-Identifier: Apache-2.0
// Whether a text is a pattern, as the format "regex" requires.
#pragma once

#include <string_view>

namespace gen::grammar {

/// Whether the text, which is UTF-8, is a pattern of ECMA-262 (2020) with the flag u.
bool is_pattern(std::string_view text);

}  // namespace gen::grammar
