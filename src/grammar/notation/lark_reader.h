// SPDX-License-Identifier: Apache-2.0
// The words of a Lark file, with their positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/regex/regex.h"

namespace gen::grammar {

enum class LarkWord : uint8_t {
  kRule,      // a name in lower case
  kTerminal,  // a name in upper case
  kString,    // with quotes, and an optional i after them
  kRegex,     // with slashes, and flags after them
  kNumber,
  kToken,    // <name> or <[ids]>
  kGrammar,  // @name
  kKeyword,  // %name; for %json, %regex and %llguidance including the JSON value that follows
  kNewline,  // one or more
  kSign,     // one or two characters
  kTextEnd,
};

struct LarkPlace {
  LarkWord word = LarkWord::kTextEnd;
  uint32_t begin = 0;
  uint32_t end = 0;   // of the word
  uint32_t next = 0;  // end of a JSON value, which begins at `end`
};

/// Skips white space and comments, from # or // to the end of the line; the last word is kTextEnd.
/// kGrammar with line and column. Texts of 4 GiB and more are refused. Cost: linear; no recursion.
Result<std::vector<LarkPlace>> read_lark(std::string_view text);

/// The characters of the string at `place`.
struct LarkString {
  std::string text;  // UTF-8
  bool any_case = false;
};
Result<LarkString> lark_string(std::string_view text, const LarkPlace& place);

/// The flags of a regular expression, and the end of its pattern.
struct LarkPattern {
  size_t begin = 0;
  size_t end = 0;
  RegexFlags flags;
};
Result<LarkPattern> lark_pattern(std::string_view text, const LarkPlace& place);

}  // namespace gen::grammar
