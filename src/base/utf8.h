// SPDX-License-Identifier: Apache-2.0
// UTF-8 by the table of the Unicode standard (no surrogates, no overlong forms, at most U+10FFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gen {

/// Offset of the first byte that cannot belong to well-formed UTF-8, or text.size() if all is well.
size_t utf8_valid_prefix(std::string_view text) noexcept;
inline bool utf8_valid(std::string_view text) noexcept {
  return utf8_valid_prefix(text) == text.size();
}

/// Length of the longest prefix that ends on a character boundary: only an incomplete but so far
/// well-formed character at the very end is left out. Malformed bytes count as complete.
size_t utf8_complete_prefix(std::string_view text) noexcept;

/// Decodes the character at `*offset` and moves past it; a malformed byte gives 0xFFFD and moves
/// one on.
/// `*offset` must be below text.size().
uint32_t utf8_next(std::string_view text, size_t* offset) noexcept;

/// Appends the encoding of `code_point` (must be a valid scalar value, else U+FFFD).
void utf8_append(uint32_t code_point, std::string* out);

}  // namespace gen
