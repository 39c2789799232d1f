// SPDX-License-Identifier: Apache-2.0
// See message_header.h.
#include "calls/message_header.h"

#include <algorithm>
#include <vector>

#include "calls/text.h"

namespace gen::calls {
namespace {

constexpr size_t kMaxHeaderBytes = 256;

// Words, which marks divide, too: "<|channel|>analysis" is the word analysis.
std::vector<std::string_view> words_of(const Messages& messages, std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  const auto end_word = [&](size_t end) {
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  };
  for (size_t at = 0; at < text.size();) {
    size_t mark = text[at] == ' ' || text[at] == '\n' ? 1 : 0;
    for (const std::string& start : messages.starts) {
      if (text.substr(at).starts_with(start)) mark = start.size();
    }
    if (mark == 0 && text.substr(at).starts_with("<|")) {
      const size_t close = text.find("|>", at);
      if (close != std::string_view::npos) mark = close + 2 - at;
    }
    if (mark == 0) {
      ++at;
      continue;
    }
    end_word(at);
    at += mark;
    begin = at;
  }
  end_word(text.size());
  return words;
}

bool holds(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

Header read_header(const Messages& messages, std::string_view text) {
  Header header;
  const std::vector<std::string_view> words = words_of(messages, text);
  for (std::string_view word : words) {
    if (holds(messages.reasoning, word)) {
      header.reasoning = true;
      continue;
    }
    if (!word.starts_with(messages.recipient)) continue;
    word.remove_prefix(messages.recipient.size());
    if (holds(messages.no_names, word)) continue;
    if (word.starts_with(messages.name_lead)) word.remove_prefix(messages.name_lead.size());
    const bool name = !word.empty() && std::all_of(word.begin(), word.end(), is_name_byte);
    // A recipient that is no name is a fault of the model: the message is text.
    if (name) header.name = word;
  }
  if (!header.name.empty()) header.reasoning = false;
  if (messages.recipient.empty() && header.name.empty()) {
    header.fits = words.size() == 1 && holds(messages.no_names, words[0]);
  }
  return header;
}

bool may_be_header(const Messages& messages, std::string_view text) noexcept {
  if (text.size() > kMaxHeaderBytes) return false;
  // The mark before a header, where the first one has it, too.
  for (const std::string& start : messages.starts) {
    if (start.starts_with(text)) return true;
  }
  const char last = text.back();
  if (is_name_byte(last)) return true;
  if (messages.header_end.find(last) != std::string::npos) return true;
  if (messages.recipient.empty()) return false;
  return std::string_view(" <|>=").find(last) != std::string_view::npos;
}

}  // namespace gen::calls
