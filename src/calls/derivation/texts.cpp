// SPDX-License-Identifier: Apache-2.0
// See texts.h.
#include "calls/derivation/texts.h"

#include <algorithm>

#include "calls/arguments/json_scanner.h"
#include "calls/text.h"

namespace gen::calls::derivation {
namespace {

// The most of a text's first n bytes that does not end inside a tag.
size_t before_tag(std::string_view text, size_t n) {
  const size_t tag = text.substr(0, n).find_last_of("<>");
  return n < text.size() && tag != kNowhere && text[tag] == '<' ? tag : n;
}

}  // namespace

bool is_blank_text(std::string_view text) noexcept { return mark_of(text).empty(); }

std::string_view common_begin(std::string_view a, std::string_view b) noexcept {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto n = static_cast<size_t>(ends.first - a.begin());
  return a.substr(0, std::min(before_tag(a, n), before_tag(b, n)));
}

std::string_view common_end(std::string_view a, std::string_view b) noexcept {
  size_t n = 0;
  while (n < std::min(a.size(), b.size()) && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  std::string_view end = a.substr(a.size() - n);
  const size_t tag = end.find_first_of("<>");
  if (n < std::max(a.size(), b.size()) && tag != kNowhere && end[tag] == '>') {
    end.remove_prefix(tag + 1);
  }
  return end;
}

size_t before_word(std::string_view text, size_t at) noexcept {
  while (at > 0 && !is_blank(text[at - 1])) {
    const size_t tag = text.substr(0, at - 1).find_last_of("<>");
    if (text[at - 1] == '>' && tag != kNowhere && text[tag] == '<') break;
    --at;
  }
  return at;
}

std::optional<Span> json_at(std::string_view text, size_t begin) {
  JsonScanner scanner;
  for (size_t at = begin; at < text.size(); ++at) {
    const auto state = scanner.take(text[at]);
    if (state == ArgumentReader::State::kBad) return std::nullopt;
    if (state == ArgumentReader::State::kDone) return Span{begin, at + 1};
  }
  return std::nullopt;
}

}  // namespace gen::calls::derivation
