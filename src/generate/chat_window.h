// SPDX-License-Identifier: Apache-2.0
// ChatWindow: selects the turns of a conversation that fit into the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "chat/chat_form.h"

namespace gen::generate {

/// Turns are dropped from the oldest on, until half of the context is free, so that the next turn
/// does not drop again. What is dropped therefore depends on every earlier answer; it is computed
/// by going through them from the first one. The result is a function of the conversation and the
/// room. What an object has computed is reused for a conversation with the same beginning and does
/// not change the result. Threads: one at a time.
class ChatWindow {
 public:
  /// The tokenizer must outlive it.
  ChatWindow(const tokenizer::Tokenizer* tokenizer, int32_t context) noexcept
      : tokenizer_(*tokenizer), context_(static_cast<size_t>(context)) {}

  /// The ids of the conversation with the opening of an answer. The oldest turns are left out if
  /// fewer than `room` tokens of the context would be left. The leading messages that instruct the
  /// model always stay, and so does the last turn, whether it fits or not. Errors as encode_chat().
  Result<std::vector<int32_t>> fit(const chat::Conversation& conversation, size_t room);

  /// Tokens of the turns that the last fit() left out and that the answer before, if this object
  /// knows it, still had; 0 after a failure.
  [[nodiscard]] size_t left_out() const noexcept { return left_out_; }

  /// How many tokens every conversation with this system message and these tools begins with; 0 if
  /// that exceeds half of the context.
  [[nodiscard]] int32_t lead_tokens(const chat::Conversation& conversation) const;

 private:
  /// An answer that began after `end` messages, with the messages from `first` on in the prompt.
  struct Answer {
    size_t end = 0;
    size_t first = 0;
  };
  Status advance(const chat::Conversation& all, size_t end, size_t room, size_t* first,
                 std::vector<int32_t>* ids);
  [[nodiscard]] std::vector<Answer> known_of(const chat::Conversation& all, size_t lead,
                                             size_t room) const;

  const tokenizer::Tokenizer& tokenizer_;
  size_t context_;
  size_t left_out_ = 0;
  // The last conversation.
  chat::Conversation known_;
  size_t room_ = 0;
  std::vector<Answer> answers_;
};

}  // namespace gen::generate
