// SPDX-License-Identifier: Apache-2.0
// The formats of JSON Schema as regular expressions.
#pragma once

#include <string>
#include <string_view>

#include "grammar/schema/document.h"

namespace gen::grammar {

enum class FormatKind { kKnown, kUnknown, kRefused };

/// Whether the name is of the vocabulary; `pattern` receives an expression over whole strings. With
/// `open` it matches all strings that may fit, else those that surely do.
FormatKind format_pattern(std::string_view name, Draft draft, bool open, std::string* pattern);

}  // namespace gen::grammar
