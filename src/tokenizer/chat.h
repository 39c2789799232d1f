// SPDX-License-Identifier: Apache-2.0
// The text of a conversation as the model was trained to see it. One form for now, the ChatML-like
// one: each message as <|im_start|>role, line break, content, <|im_end|>, line break.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace gen::tokenizer {

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", …
  std::string content;  // any UTF-8
};

/// kInvalidArgument for a role that is empty, and for what is not UTF-8.
Result<ChatMessage> chat_message(std::string_view role, std::string_view content);

/// A stretch of formatted text. Only the template's own words may turn into special tokens, so a
/// message that contains "<|im_end|>" cannot end its turn.
struct ChatSegment {
  std::string text;
  bool parse_special = false;
};

/// kUnsupported if the template is missing or of a form that is not supported yet.
Status chat_supported(std::string_view chat_template);

/// The conversation in stretches; with `add_generation_prompt` it ends with the opening of an
/// assistant's message. kInvalidArgument for an empty role or one with a line break or "<|" in it,
/// kUnsupported as above.
Result<std::vector<ChatSegment>> format_chat_segments(std::string_view chat_template,
                                                      std::span<const ChatMessage> messages,
                                                      bool add_generation_prompt);

/// The same as one text, for showing.
Result<std::string> format_chat(std::string_view chat_template,
                                std::span<const ChatMessage> messages, bool add_generation_prompt);

/// In the form of the tokenizer's model, as one text that is to be encoded as a whole: so no
/// message may hold the text of a control token, which is kInvalidArgument.
Result<std::string> format_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                bool add_generation_prompt);

}  // namespace gen::tokenizer
