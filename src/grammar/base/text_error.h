// SPDX-License-Identifier: Apache-2.0
// Failures of grammar texts, with line and column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace gen::grammar {

/// kGrammar with "line L, column C: message"; both count from 1, columns in characters.
Status error_at(std::string_view text, size_t offset, const std::string& message);

/// A word of the text for a message: at most 40 bytes, control characters as '?'.
std::string quoted(std::string_view word);
/// For a text that says \ and `letter`, which mean nothing together, at `offset`; NUL is the text's
/// end.
Status unknown_escape(std::string_view text, size_t offset, char letter);

}  // namespace gen::grammar
