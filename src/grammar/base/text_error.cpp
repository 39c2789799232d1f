// SPDX-License-Identifier: Apache-2.0
// Failures of grammar texts, see text_error.h.
#include "grammar/base/text_error.h"

#include <algorithm>

#include "base/utf8.h"

namespace gen::grammar {

Status error_at(std::string_view text, size_t offset, const std::string& message) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::string_view last = before.substr(before.rfind('\n') + 1);
  const auto column = 1 + std::count_if(last.begin(), last.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
                      });
  return error(Code::kGrammar, "line %td, column %td: %s", line, column, message.c_str());
}

Status unknown_escape(std::string_view text, size_t offset, char letter) {
  const bool shown = letter > 0x20 && letter < 0x7F;
  return error_at(text, offset,
                  "unknown escape" + (shown ? " \\" + std::string(1, letter) : std::string()));
}

std::string quoted(std::string_view word) {
  constexpr size_t kLongest = 40;
  const bool cut = word.size() > kLongest;
  std::string shown(word.substr(0, kLongest));
  shown.resize(utf8_complete_prefix(shown));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return "\"" + shown + (cut ? "...\"" : "\"");
}

}  // namespace gen::grammar
