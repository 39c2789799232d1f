// SPDX-License-Identifier: Apache-2.0
// ChatWindow: which turns of a conversation are laid out where a context has no room for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "chat/chat_form.h"

namespace gen::generate {

/// Turns go from the oldest on, and half of the context is free then, so that it does not happen
/// again at once; so which ones go depends on all answers before. It is found out by going through
/// them from the first one, and is a function of the conversation and the room: what an object has
/// found out serves for what the next conversation begins with, and changes nothing. Threads: one
/// at a time.
class ChatWindow {
 public:
  /// The tokenizer must outlive it.
  ChatWindow(const tokenizer::Tokenizer* tokenizer, int32_t context) noexcept
      : tokenizer_(*tokenizer), context_(static_cast<size_t>(context)) {}

  /// The ids of the conversation with the opening of an answer, without its oldest turns where less
  /// than `room` tokens of the context are left. The messages before the first turn that tell the
  /// model what it is stay, and so does the last turn, whether it fits or not. Errors as
  /// encode_chat().
  Result<std::vector<int32_t>> fit(const chat::Conversation& conversation, size_t room);

  /// How many tokens any conversation of this system message and these tools begins with; 0 if that
  /// is more than half of the context.
  [[nodiscard]] int32_t lead_tokens(const chat::Conversation& conversation) const;

 private:
  /// An answer began behind `end` messages, and messages from `first` on were laid out for it.
  struct Answer {
    size_t end = 0;
    size_t first = 0;
  };
  Status advance(const chat::Conversation& all, size_t end, size_t room, size_t* first,
                 std::vector<int32_t>* ids) const;
  [[nodiscard]] std::vector<Answer> known_of(const chat::Conversation& all, size_t lead,
                                             size_t room) const;

  const tokenizer::Tokenizer& tokenizer_;
  size_t context_;
  // Of the last conversation.
  chat::Conversation known_;
  size_t room_ = 0;
  std::vector<Answer> answers_;
};

}  // namespace gen::generate
