// SPDX-License-Identifier: Apache-2.0
// The ChatML-like form, see chat.h.
#include "tokenizer/chat.h"

#include <algorithm>

#include "base/utf8.h"

namespace gen::tokenizer {
namespace {

constexpr std::string_view kOpen = "<|im_start|>";
constexpr std::string_view kClose = "<|im_end|>\n";

Status check_role(std::string_view role) {
  const bool plain = role.find_first_of("\r\n") == std::string_view::npos &&
                     role.find("<|") == std::string_view::npos;
  if (!role.empty() && plain) return {};
  return error(Code::kInvalidArgument, "'%.*s' is not a chat role",
               static_cast<int>(std::min<size_t>(role.size(), 64)), role.data());
}

Status check_controls(const Tokenizer& tokenizer, const ChatMessage& message) {
  std::vector<int32_t> ids;
  GEN_TRY(tokenizer.encode(message.content, kParseSpecial, &ids));
  for (const int32_t id : ids) {
    if (!tokenizer.is_control(id)) continue;
    const std::string& text = tokenizer.spec().tokens[static_cast<size_t>(id)];
    return error(Code::kInvalidArgument, "a message of role %.40s holds the special text %.80s",
                 message.role.c_str(), text.c_str());
  }
  return {};
}

// Text of the template joins the stretch before it if that is of the template too.
void add_template_text(std::string_view text, std::vector<ChatSegment>* segments) {
  if (segments->empty() || !segments->back().parse_special) segments->push_back({{}, true});
  segments->back().text.append(text);
}

}  // namespace

Result<ChatMessage> chat_message(std::string_view role, std::string_view content) {
  if (role.empty()) return error(Code::kInvalidArgument, "role is empty");
  if (!utf8_valid(role)) return error(Code::kInvalidArgument, "role is not UTF-8");
  if (const size_t valid = utf8_valid_prefix(content); valid != content.size()) {
    return error(Code::kInvalidArgument, "text is not UTF-8 at byte %zu of %zu", valid,
                 content.size());
  }
  return ChatMessage{std::string(role), std::string(content)};
}

Status chat_supported(std::string_view chat_template) {
  if (chat_template.empty()) return error(Code::kUnsupported, "the model has no chat template");
  if (chat_template.find(kOpen) != std::string_view::npos) return {};
  return error(Code::kUnsupported,
               "chat template '%.*s' is not of the supported form (<|im_start|>)",
               static_cast<int>(std::min<size_t>(chat_template.size(), 48)), chat_template.data());
}

Result<std::vector<ChatSegment>> format_chat_segments(std::string_view chat_template,
                                                      std::span<const ChatMessage> messages,
                                                      bool add_generation_prompt) {
  GEN_TRY(chat_supported(chat_template));
  std::vector<ChatSegment> segments;
  for (const ChatMessage& message : messages) {
    GEN_TRY(check_role(message.role));
    add_template_text(kOpen, &segments);
    segments.push_back({message.role + '\n' + message.content, false});
    add_template_text(kClose, &segments);
  }
  if (add_generation_prompt) {
    add_template_text(kOpen, &segments);
    add_template_text("assistant\n", &segments);
  }
  return segments;
}

Result<std::string> format_chat(std::string_view chat_template,
                                std::span<const ChatMessage> messages, bool add_generation_prompt) {
  GEN_ASSIGN(const std::vector<ChatSegment> segments,
             format_chat_segments(chat_template, messages, add_generation_prompt));
  std::string text;
  for (const ChatSegment& segment : segments) text.append(segment.text);
  return text;
}

Result<std::string> format_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                bool add_generation_prompt) {
  for (const ChatMessage& message : messages) GEN_TRY(check_controls(tokenizer, message));
  return format_chat(tokenizer.spec().chat_template, messages, add_generation_prompt);
}

}  // namespace gen::tokenizer
