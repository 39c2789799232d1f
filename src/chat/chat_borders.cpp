// SPDX-License-Identifier: Apache-2.0
// See chat_borders.h.
#include "chat/chat_borders.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chat/chat_form.h"

namespace gen::chat {
namespace {

/// A text that begins with another character, trimmed or not.
std::string other_text(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text[begin] == 'a' ? "b" : "a";
}

}  // namespace

std::vector<int32_t> chat_borders(const tokenizer::Tokenizer& tokenizer,
                                  const Conversation& conversation, std::span<const int32_t> ids) {
  std::vector<int32_t> borders;
  const auto add_common = [&](const Conversation& other, bool add_generation_prompt) {
    std::vector<int32_t> of_other;
    if (!encode_chat(tokenizer, other, add_generation_prompt, &of_other).ok()) return;
    const auto same = std::mismatch(ids.begin(), ids.end(), of_other.begin(), of_other.end());
    if (same.first == ids.begin() || same.first == ids.end()) return;
    borders.push_back(static_cast<int32_t>(same.first - ids.begin()));
  };
  const std::vector<ChatMessage>& messages = conversation.messages;
  const auto user = std::find_if(messages.rbegin(), messages.rend(),
                                 [](const ChatMessage& one) { return one.role == "user"; });
  for (size_t end = messages.size(); end > 0;) {
    Conversation other = conversation;
    ChatMessage& last = other.messages[end - 1];
    last.content = other_text(last.content);
    add_common(other, true);
    other.messages.assign(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(end));
    add_common(other, false);
    const auto users = static_cast<size_t>(messages.rend() - user);  // messages up to it
    end = users < end ? users : 0;
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace gen::chat
