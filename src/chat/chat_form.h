// SPDX-License-Identifier: Apache-2.0
// The text of a conversation as the model was trained to see it: by the template of its file
// (template/template.h), or by a form of our own where the file has none (builtin_forms.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "template/template.h"
#include "chat/conversation.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"

namespace gen::chat {

/// A stretch of formatted text. Only the template's own words may turn into special tokens, so a
/// message that contains "<|im_end|>" cannot end its turn.
struct ChatSegment {
  std::string text;
  bool parse_special = false;
};

/// What lays conversations out for one model.
/// Threads: immutable; any number may use one.
class ChatForm final : public tokenizer::Derived {
 public:
  /// Of the tokenizer's template, made once and kept with it. kUnsupported if there is none and no
  /// form is recognised by the vocabulary (a recognised one is noted in the log), and with the
  /// reason for one that cannot be used.
  static Result<std::shared_ptr<const ChatForm>> of(const tokenizer::Tokenizer& tokenizer);

  /// Of the conversation's own template if it has one, else of the tokenizer's.
  static Result<std::shared_ptr<const ChatForm>> of(const tokenizer::Tokenizer& tokenizer,
                                                    const Conversation& conversation);

  /// The conversation in stretches; with `add_generation_prompt` it ends with the opening of an
  /// assistant's message, if the template has such. The roles that chat formats know are words of
  /// the form; any other is text like the content. kInvalidArgument for what the template does not
  /// take, with its reason; kUnsupported for a template that asks for what is not there or takes
  /// too much.
  [[nodiscard]] Result<std::vector<ChatSegment>> segments(const Conversation& conversation,
                                                          bool add_generation_prompt) const;

 private:
  static Result<std::shared_ptr<const ChatForm>> make(
      const tokenizer::Tokenizer& tokenizer, std::string_view source,
      std::shared_ptr<const templates::Template> compiled);
  /// How templates want a tool call, in which they differ: see call_style().
  struct CallStyle {
    bool without_content = false;  // content is none, not empty
    bool as_text = false;          // arguments are JSON text, not an object
  };
  [[nodiscard]] Status fill(const Conversation& conversation, const CallStyle& style,
                            templates::Heap* heap, templates::Variables* out) const;
  void add_user_text(std::string_view text, std::vector<ChatSegment>* out) const;
  /// That with which the template shows a call; nothing if it does with none.
  [[nodiscard]] std::optional<CallStyle> call_style(const Conversation& conversation) const;
  [[nodiscard]] Result<templates::Text> render(const Conversation& conversation,
                                               const CallStyle& style, bool add_generation_prompt,
                                               templates::Heap* heap) const;

  std::shared_ptr<const templates::Template> template_;
  std::string bos_;
  std::string eos_;
  std::string_view reasoning_key_;
  bool knows_tools_ = false;                  // the template reads `tools`
  mutable std::atomic<int> call_style_ = -1;  // what call_style() found; -1: nothing so far
  // User-defined tokens are found in any text, so what a user wrote is cut inside of those that
  // are marks of turns or words of the template.
  std::vector<std::string> mark_texts_;
  tokenizer::SpecialMatcher marks_;
};

/// Token ids of a conversation. Only what the template wrote becomes special tokens.
/// Begin-of-sequence comes first where the vocabulary or the template wants it, and once. Errors as
/// ChatForm and Tokenizer::encode_segments; appends nothing then.
Status encode_chat(const tokenizer::Tokenizer& tokenizer, const Conversation& conversation,
                   bool add_generation_prompt, std::vector<int32_t>* out);

/// What of a session can stay when it is to hold `wanted`: its first `held` tokens stand for the
/// first `wanted` ids of it.
struct ChatMatch {
  size_t held = 0;
  size_t wanted = 0;
};

/// The longest match. Special tokens must be equal; texts between them may be cut into tokens
/// differently, as a model that said them has done.
ChatMatch match_chat(const tokenizer::Tokenizer& tokenizer, std::span<const int32_t> held,
                     std::span<const int32_t> wanted);

/// The same as one text that is to be encoded as a whole: so no message may hold the text of a
/// control token, which is kInvalidArgument, as is a role with a line break or "<|" in it.
Result<std::string> format_chat(const tokenizer::Tokenizer& tokenizer,
                                const Conversation& conversation, bool add_generation_prompt);

}  // namespace gen::chat
