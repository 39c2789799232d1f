// SPDX-License-Identifier: Apache-2.0
// The formats of JSON Schema as regular expressions.
#pragma once

#include <string>
#include <string_view>

#include "grammar/schema/document.h"

namespace gen::grammar {

enum class FormatKind { kKnown, kUnknown, kRefused };

/// Whether the name is of the vocabulary; `pattern` receives an expression over whole strings.
FormatKind format_pattern(std::string_view name, Draft draft, std::string* pattern);

/// The pattern of "regex": some of the patterns that are valid.
std::string regex_syntax();

}  // namespace gen::grammar
