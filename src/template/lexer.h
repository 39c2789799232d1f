// SPDX-License-Identifier: Apache-2.0
// A template's source as tokens, with the white space rules of chat templates: trim_blocks,
// lstrip_blocks, the marks - and +, and one line break at the end of the source left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace gen::templates {

enum class TokenKind : uint8_t {
  kData,
  kBlockBegin,
  kBlockEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kSymbol,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  uint32_t line = 1;
  std::string text;  // of a string: without quotes and escapes
  double number = 0;
  int64_t integer = 0;
};

/// The last token is kEnd. kFormat, naming the line, for invalid source.
Result<std::vector<Token>> tokenize(std::string_view source);

/// Python's str.isspace for one character.
bool is_space(uint32_t character) noexcept;
/// Length of `text` without white space at its end.
size_t stripped_end(std::string_view text) noexcept;
/// Offset of the first character of `text` that is no white space.
size_t stripped_begin(std::string_view text) noexcept;

}  // namespace gen::templates
