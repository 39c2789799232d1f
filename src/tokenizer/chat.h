// SPDX-License-Identifier: Apache-2.0
// The text of a conversation as the model was trained to see it: by the template of its file
// (template/template.h), or by a form of our own where the file has none (chat_forms.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "template/template.h"
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

/// What lays conversations out for one model.
/// Threads: immutable; any number may use one.
class ChatForm final : public Derived {
 public:
  /// Of the tokenizer's template, made once and kept with it. kUnsupported if there is none and no
  /// form is recognised by the vocabulary (a recognised one is noted in the log), and with the
  /// reason for one that cannot be used.
  static Result<std::shared_ptr<const ChatForm>> of(const Tokenizer& tokenizer);

  /// The conversation in stretches; with `add_generation_prompt` it ends with the opening of an
  /// assistant's message, if the template has such. The roles that chat formats know are words of
  /// the form; any other is text like the content. kInvalidArgument for what the template does not
  /// take, with its reason; kUnsupported for a template that asks for what is not there or takes
  /// too much.
  [[nodiscard]] Result<std::vector<ChatSegment>> segments(std::span<const ChatMessage> messages,
                                                          bool add_generation_prompt) const;

 private:
  std::shared_ptr<const templates::Template> template_;
  std::string bos_;
  std::string eos_;
};

/// The same as one text that is to be encoded as a whole: so no message may hold the text of a
/// control token, which is kInvalidArgument, as is a role with a line break or "<|" in it.
Result<std::string> format_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                bool add_generation_prompt);

}  // namespace gen::tokenizer
