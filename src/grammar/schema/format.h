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

/// Of a format of dates and times those that usual decoders take: time.Time of Go, OffsetDateTime of
/// Java, DateTimeOffset of .NET and datetime.fromisoformat of Python 3.11. False for other formats.
bool plain_format_pattern(std::string_view name, std::string* pattern);

}  // namespace gen::grammar
