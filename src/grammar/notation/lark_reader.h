// SPDX-License-Identifier: Apache-2.0
// The words of a Lark file, with where they stand.
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
  kString,    // with quotes, and with i behind them
  kRegex,     // with slashes, and with flags behind them
  kNumber,
  kToken,    // <name> or <[ids]>
  kGrammar,  // @name
  kKeyword,  // %name; behind %json, %regex and %llguidance with the JSON value that follows
  kNewline,  // one or more
  kSign,     // one or two characters
  kTextEnd,
};

struct LarkPlace {
  LarkWord word = LarkWord::kTextEnd;
  uint32_t begin = 0;
  uint32_t end = 0;   // of the word
  uint32_t next = 0;  // of a JSON value: its end; its begin is `end`
};

/// Without white space and comments, which # and // begin; the last is kTextEnd. kGrammar with line
/// and column. Texts of 4 GiB and more are refused. Cost: linear; nothing recurses.
Result<std::vector<LarkPlace>> read_lark(std::string_view text);

/// The characters of a string that stands at `place`.
struct LarkString {
  std::string text;  // UTF-8
  bool any_case = false;
};
Result<LarkString> lark_string(std::string_view text, const LarkPlace& place);

/// The flags behind a regular expression, and where its pattern ends.
struct LarkPattern {
  size_t begin = 0;
  size_t end = 0;
  RegexFlags flags;
};
Result<LarkPattern> lark_pattern(std::string_view text, const LarkPlace& place);

}  // namespace gen::grammar
