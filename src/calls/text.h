// SPDX-License-Identifier: Apache-2.0
// Bytes and white space of answers.
#pragma once

#include <string_view>

namespace gen::calls {

/// JSON's white space, which readers ignore around marks.
constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Of a function's name.
constexpr bool is_name_byte(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

/// Without white space at its ends.
constexpr std::string_view mark_of(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace gen::calls
