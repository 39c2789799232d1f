// SPDX-License-Identifier: Apache-2.0
// The formats of JSON Schema as regular expressions.
#pragma once

#include <string>
#include <string_view>

#include "grammar/schema/document.h"

namespace gen::grammar {

enum class FormatKind { kKnown, kUnknown, kRefused };

/// Whether the vocabulary defines the name; `pattern` receives an expression over whole strings.
/// With `open` it matches all strings that may be valid, otherwise those that certainly are.
FormatKind format_pattern(std::string_view name, Draft draft, bool open, std::string* pattern);

/// For formats of dates and times, the texts that usual decoders accept: time.Time of Go,
/// OffsetDateTime of Java, DateTimeOffset of .NET and datetime.fromisoformat of Python 3.11. False
/// for other formats.
bool plain_format_pattern(std::string_view name, std::string* pattern);

}  // namespace gen::grammar
