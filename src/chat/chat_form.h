// SPDX-License-Identifier: Apache-2.0
// The text of a conversation as the model was trained to see it: rendered by the template of its
// file (template/template.h), or in a built-in form if the file has none (builtin_forms.h).
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

/// A stretch of rendered text. Only the template's own words may become special tokens, so a
/// message that contains "<|im_end|>" cannot end its turn.
struct ChatSegment {
  std::string text;
  bool parse_special = false;
};

/// Renders conversations for one model.
/// Threads: immutable; any number may use one.
class ChatForm final : public tokenizer::Derived {
 public:
  /// The form of the tokenizer's template, made once and cached with it. kUnsupported, with the
  /// reason, if the template cannot be used, or if there is none and the vocabulary indicates no
  /// form (one that it indicates is noted in the log).
  static Result<std::shared_ptr<const ChatForm>> of(const tokenizer::Tokenizer& tokenizer);

  /// The form of the conversation's own template if it has one, else of the tokenizer's.
  static Result<std::shared_ptr<const ChatForm>> of(const tokenizer::Tokenizer& tokenizer,
                                                    const Conversation& conversation);

  /// The conversation in stretches; with `add_generation_prompt` it ends with the opening of an
  /// assistant's message, if the template has one. The roles that chat formats know are words of
  /// the form; any other is text like the content. kInvalidArgument for a conversation that the
  /// template rejects, with its reason; kUnsupported for a template that uses unknown features or
  /// exceeds a limit.
  [[nodiscard]] Result<std::vector<ChatSegment>> segments(const Conversation& conversation,
                                                          bool add_generation_prompt) const;

 private:
  static Result<std::shared_ptr<const ChatForm>> make(
      const tokenizer::Tokenizer& tokenizer, std::string_view source,
      std::shared_ptr<const templates::Template> compiled);
  /// The form of tool calls that a template expects, in which templates differ: see call_style().
  struct CallStyle {
    bool without_content = false;  // content is none, not empty
    bool as_text = false;          // arguments are JSON text, not an object
  };
  [[nodiscard]] Status fill(const Conversation& conversation, const CallStyle& style,
                            templates::Heap* heap, templates::Variables* out) const;
  void add_user_text(std::string_view text, std::vector<ChatSegment>* out) const;
  /// The style with which the template renders a call; nothing if there is none.
  [[nodiscard]] std::optional<CallStyle> call_style(const Conversation& conversation) const;
  [[nodiscard]] Result<templates::Text> render(const Conversation& conversation,
                                               const CallStyle& style, bool add_generation_prompt,
                                               templates::Heap* heap) const;

  std::shared_ptr<const templates::Template> template_;
  std::string bos_;
  std::string eos_;
  std::string_view reasoning_key_;
  bool knows_tools_ = false;                  // the template reads `tools`
  mutable std::atomic<int> call_style_ = -1;  // the result of call_style(); -1: not determined yet
  // User-defined tokens are recognised in any text, so user text is split inside those that are
  // marks of turns or words of the template.
  std::vector<std::string> mark_texts_;
  tokenizer::SpecialMatcher marks_;
};

/// Token ids of a conversation. Only what the template wrote becomes special tokens.
/// Begin-of-sequence comes first, exactly once, where the vocabulary or the template wants it.
/// Errors as ChatForm and Tokenizer::encode_segments, with nothing appended.
Status encode_chat(const tokenizer::Tokenizer& tokenizer, const Conversation& conversation,
                   bool add_generation_prompt, std::vector<int32_t>* out);

/// What the template writes behind the last message: the opening of an answer, perhaps of its
/// reasoning. Errors as encode_chat().
Result<std::string> chat_opening(const tokenizer::Tokenizer& tokenizer,
                                 const Conversation& conversation);

/// The part of a session that can stay when it must hold `wanted`: its first `held` tokens
/// correspond to the first `wanted` ids.
struct ChatMatch {
  size_t held = 0;
  size_t wanted = 0;
};

/// The longest match. Special tokens must be equal; texts between them may be split into tokens
/// differently, as a model that generated them may have done.
ChatMatch match_chat(const tokenizer::Tokenizer& tokenizer, std::span<const int32_t> held,
                     std::span<const int32_t> wanted);

/// The same as one text to be encoded as a whole: no message may therefore contain the name of a
/// control token, which is kInvalidArgument, and no role a line break or "<|".
Result<std::string> format_chat(const tokenizer::Tokenizer& tokenizer,
                                const Conversation& conversation, bool add_generation_prompt);

}  // namespace gen::chat
