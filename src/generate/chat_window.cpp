// SPDX-License-Identifier: Apache-2.0
// See chat_window.h.
#include "generate/chat_window.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace gen::generate {
namespace {

using chat::ChatMessage;
using chat::Conversation;

/// Number of leading messages that instruct the model. They are always kept.
size_t lead_of(const Conversation& conversation) {
  size_t n = 0;
  for (const ChatMessage& message : conversation.messages) {
    if (message.role != "system" && message.role != "developer") break;
    ++n;
  }
  return n;
}

/// The start of the next turn after message `from`; nullopt if there is none before `end`. The last
/// turn is always kept.
std::optional<size_t> next_turn(const Conversation& conversation, size_t from, size_t end) {
  for (size_t i = from + 1; i < end; ++i) {
    if (conversation.messages[i].role == "user") return i;
  }
  return std::nullopt;
}

/// The leading messages and the messages [first, end).
Conversation part_of(const Conversation& all, size_t first, size_t end) {
  Conversation part;
  part.tools = all.tools;
  part.variables = all.variables;
  part.source = all.source;
  part.form = all.form;
  part.now = all.now;
  const auto at = [&](size_t i) { return all.messages.begin() + static_cast<std::ptrdiff_t>(i); };
  part.messages.assign(at(0), at(lead_of(all)));
  part.messages.insert(part.messages.end(), at(first), at(end));
  return part;
}

bool differ_in_more_than_messages(const Conversation& a, const Conversation& b) {
  return a.tools != b.tools || a.variables != b.variables || a.source != b.source || a.now != b.now;
}

}  // namespace

// Advances `*first` until the messages [*first, end) fit. Changes nothing on failure.
Status ChatWindow::advance(const Conversation& all, size_t end, size_t room, size_t* first,
                           std::vector<int32_t>* ids) {
  const auto encode = [&](size_t from) {
    ids->clear();
    return chat::encode_chat(tokenizer_, part_of(all, from, end), true, ids);
  };
  size_t from = *first;
  GEN_TRY(encode(from));
  const size_t whole = ids->size();
  if (whole + room > context_) {
    while (ids->size() > context_ / 2) {
      const std::optional<size_t> next = next_turn(all, from, end);
      if (!next.has_value()) break;
      from = *next;
      GEN_TRY(encode(from));
    }
  }
  *first = from;
  left_out_ += whole - std::min(whole, ids->size());
  return {};
}

// The known answers that belong to this conversation as well.
std::vector<ChatWindow::Answer> ChatWindow::known_of(const Conversation& all, size_t lead,
                                                     size_t room) const {
  if (room != room_ || differ_in_more_than_messages(all, known_)) return {};
  const auto& messages = all.messages;
  const size_t most = std::min(messages.size(), known_.messages.size());
  size_t same = 0;
  while (same < most && messages[same] == known_.messages[same]) ++same;
  std::vector<Answer> answers = answers_;
  const auto other = [&](const Answer& answer) {
    return answer.end <= lead || answer.end > same || answer.end >= messages.size() ||
           messages[answer.end].role != "assistant";
  };
  answers.erase(std::remove_if(answers.begin(), answers.end(), other), answers.end());
  return answers;
}

Result<std::vector<int32_t>> ChatWindow::fit(const Conversation& conversation, size_t room) {
  const std::vector<ChatMessage>& messages = conversation.messages;
  const size_t lead = lead_of(conversation);
  std::vector<Answer> answers = known_of(conversation, lead, room);
  Answer last = answers.empty() ? Answer{lead, lead} : answers.back();
  std::vector<int32_t> ids;
  left_out_ = 0;
  for (size_t end = last.end + 1; end < messages.size(); ++end) {
    if (messages[end].role != "assistant") continue;
    // A template that refuses this part of the conversation may accept all of it.
    const Status status = advance(conversation, end, room, &last.first, &ids);
    if (status.code() == Code::kOutOfMemory) return status;
    answers.push_back({end, last.first});
  }
  if (Status status = advance(conversation, messages.size(), room, &last.first, &ids);
      !status.ok()) {
    left_out_ = 0;
    return status;
  }
  answers.push_back({messages.size(), last.first});
  Conversation known = conversation;
  known_ = std::move(known);
  room_ = room;
  answers_ = std::move(answers);
  return ids;
}

int32_t ChatWindow::lead_tokens(const Conversation& conversation) const {
  std::vector<int32_t> ids[2];
  for (size_t i = 0; i < 2; ++i) {
    Conversation one = part_of(conversation, 0, 0);
    one.messages.push_back({"user", i == 0 ? "0" : "1"});
    if (!chat::encode_chat(tokenizer_, one, true, &ids[i]).ok()) return 0;
  }
  const auto same = std::mismatch(ids[0].begin(), ids[0].end(), ids[1].begin(), ids[1].end());
  const auto n = static_cast<size_t>(same.first - ids[0].begin());
  return n <= context_ / 2 ? static_cast<int32_t>(n) : 0;
}

}  // namespace gen::generate
