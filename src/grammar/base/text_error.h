// SPDX-License-Identifier: Apache-2.0
// Errors in grammar texts, with line and column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace gen::grammar {

/// kGrammar with "line L, column C: message"; both count from 1, columns in characters.
Status error_at(std::string_view text, size_t offset, const std::string& message);

/// Quotes a word of the text for a message: at most 40 bytes, control characters as '?'.
std::string quoted(std::string_view word);
/// For an unknown escape, \ and `letter`, at `offset`; NUL means the end of the text.
Status unknown_escape(std::string_view text, size_t offset, char letter);

}  // namespace gen::grammar
