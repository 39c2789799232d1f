// SPDX-License-Identifier: Apache-2.0
// See chat_session.h.
#include "generate/chat_session.h"

#include <algorithm>
#include <string>
#include <utility>

namespace gen::generate {
namespace {

using tokenizer::ChatMessage;
using tokenizer::Conversation;

/// Messages at the beginning that tell the model what it is: they always stay.
size_t lead_of(const Conversation& conversation) {
  size_t n = 0;
  for (const ChatMessage& message : conversation.messages) {
    if (message.role != "system" && message.role != "developer") break;
    ++n;
  }
  return n;
}

/// The beginning of the next turn after message `from`, or nothing: the last turn always stays.
std::optional<size_t> next_turn(const Conversation& conversation, size_t from) {
  for (size_t i = from + 1; i < conversation.messages.size(); ++i) {
    if (conversation.messages[i].role == "user") return i;
  }
  return std::nullopt;
}

/// Everything but the messages.
Conversation frame_of(const Conversation& conversation) {
  Conversation frame;
  frame.tools = conversation.tools;
  frame.variables = conversation.variables;
  frame.source = conversation.source;
  frame.form = conversation.form;
  frame.now = conversation.now;
  return frame;
}

Conversation without(const Conversation& conversation, size_t lead, size_t first) {
  Conversation rest = frame_of(conversation);
  const auto begin = conversation.messages.begin();
  rest.messages.assign(begin, begin + static_cast<std::ptrdiff_t>(lead));
  rest.messages.insert(rest.messages.end(), begin + static_cast<std::ptrdiff_t>(first),
                       conversation.messages.end());
  return rest;
}

}  // namespace

ChatSession::ChatSession(std::shared_ptr<const Generator> generator, std::shared_ptr<Chat> chat,
                         std::shared_ptr<Session> session) noexcept
    : generator_(std::move(generator)), chat_(std::move(chat)), session_(std::move(session)) {}

Result<std::shared_ptr<ChatSession>> ChatSession::create(
    const std::shared_ptr<const Generator>& generator, std::shared_ptr<Chat> chat) {
  if (generator->tokenizer() == nullptr) {
    return error(Code::kUnsupported, "the model has no tokenizer, and so no chat template");
  }
  GEN_ASSIGN(auto session, generator->new_session());
  return std::shared_ptr<ChatSession>(
      new ChatSession(generator, std::move(chat), std::move(session)));
}

Result<std::vector<int32_t>> ChatSession::encoded(size_t first) const {
  const Conversation& all = chat_->conversation;
  const size_t lead = lead_of(all);
  std::vector<int32_t> ids;
  if (first <= lead) {
    GEN_TRY(tokenizer::encode_chat(*generator_->tokenizer(), all, true, &ids));
  } else {
    GEN_TRY(
        tokenizer::encode_chat(*generator_->tokenizer(), without(all, lead, first), true, &ids));
  }
  return ids;
}

Result<std::vector<int32_t>> ChatSession::wanted(int32_t answer_tokens, size_t* first) const {
  const Conversation& all = chat_->conversation;
  *first = std::clamp(first_, lead_of(all), all.messages.size());
  GEN_ASSIGN(std::vector<int32_t> ids, encoded(*first));
  if (!generator_->options().shift_context) return ids;
  const auto context = static_cast<size_t>(generator_->max_seq_len());
  const size_t room = std::min(static_cast<size_t>(answer_tokens), context / 4);
  if (ids.size() + room <= context) return ids;
  // Turns go until half of the context is free, so that it does not happen again at once.
  while (ids.size() > context / 2) {
    const std::optional<size_t> next = next_turn(all, *first);
    if (!next.has_value()) break;
    GEN_ASSIGN(ids, encoded(*next));
    *first = *next;
  }
  return ids;
}

int32_t ChatSession::lead_tokens() const {
  const Conversation& all = chat_->conversation;
  std::vector<int32_t> ids[2];
  for (size_t i = 0; i < 2; ++i) {
    Conversation one = without(all, lead_of(all), all.messages.size());
    one.messages.push_back({"user", i == 0 ? "0" : "1"});
    if (!tokenizer::encode_chat(*generator_->tokenizer(), one, true, &ids[i]).ok()) return 0;
  }
  const auto same = std::mismatch(ids[0].begin(), ids[0].end(), ids[1].begin(), ids[1].end());
  const auto n = static_cast<int32_t>(same.first - ids[0].begin());
  return n <= generator_->max_seq_len() / 2 ? n : 0;
}

Result<std::unique_ptr<Generation>> ChatSession::begin(const CallParams& params) {
  size_t first = 0;
  GEN_ASSIGN(const std::vector<int32_t> ids,
             wanted(params.stops.effective_max_new_tokens(), &first));
  if (ids.empty()) {
    return error(Code::kInvalidArgument, "the chat template makes nothing of the conversation");
  }
  if (ids.size() >= static_cast<size_t>(generator_->max_seq_len())) {
    return error(Code::kContextFull,
                 "the conversation of %zu tokens leaves no room for an answer in the context of %d",
                 ids.size(), generator_->max_seq_len());
  }
  if (generator_->options().shift_context) GEN_TRY(session_->set_keep(lead_tokens()));
  GEN_ASSIGN(const size_t common, session_->keep_common(ids));
  first_ = first;
  Prompt prompt;
  prompt.tokens = std::span(ids).subspan(common);
  return session_->open(prompt, params);
}

bool ChatSession::goes_on() const {
  const std::vector<ChatMessage>& messages = chat_->conversation.messages;
  return cut_.has_value() && cut_->message == messages.size() &&
         cut_->text == messages.back().content && cut_->held == session_->length();
}

Result<std::unique_ptr<ChatTurn>> ChatSession::open(std::optional<std::string_view> message,
                                                    const CallParams& params) {
  InUseGuard guard(&chat_->in_use);
  GEN_TRY(guard.entered("the conversation"));
  std::unique_ptr<ChatTurn> turn(new ChatTurn(shared_from_this(), std::move(guard)));
  std::vector<ChatMessage>& messages = chat_->conversation.messages;
  if (message.has_value()) {
    GEN_ASSIGN(ChatMessage said, tokenizer::chat_message("user", *message));
    messages.push_back(std::move(said));
  }
  const bool ends_with_answer = !messages.empty() && messages.back().role == "assistant" &&
                                messages.back().tool_calls.empty();
  turn->goes_on_ = ends_with_answer && goes_on();
  if (ends_with_answer && !turn->goes_on_) {
    return error(Code::kState, "the conversation ends with an answer: add a message to it");
  }
  if (turn->goes_on_) {
    GEN_ASSIGN(turn->generation_, session_->open(Prompt{}, params));
  } else {
    GEN_ASSIGN(turn->generation_, begin(params));
  }
  return turn;
}

Status ChatSession::send(std::optional<std::string_view> message, const CallParams& params,
                         EventCallback callback, void* user, std::optional<GenResult>* result) {
  result->reset();
  GEN_ASSIGN(const auto turn, open(message, params));
  Status status = pull_all(&turn->generation(), callback, user);
  if (!turn->generation().ended()) return status;
  if (Status noted = turn->note_end(); !noted.ok()) status = std::move(noted);
  result->emplace(turn->generation().take_result());
  return status;
}

ChatTurn::ChatTurn(std::shared_ptr<ChatSession> session, InUseGuard guard) noexcept
    : session_(std::move(session)),
      guard_(std::move(guard)),
      before_(session_->chat_->conversation.messages.size()) {}

ChatTurn::~ChatTurn() {
  if (generation_ != nullptr && !generation_->ended()) generation_->stop(1);
  static_cast<void>(note_end());
}

Status ChatTurn::note_end() noexcept {
  if (noted_ || (generation_ != nullptr && !generation_->ended())) return {};
  noted_ = true;
  // A model may have nothing to say; a full context is no answer.
  const GenResult* const result = generation_ != nullptr ? &generation_->result() : nullptr;
  const bool answered =
      result != nullptr && result->finish_reason != FinishReason::kError &&
      (result->usage.completion > 0 ||
       (result->status.ok() && result->finish_reason == FinishReason::kStopToken));
  if (answered) {
    try {
      add_answer();
      return {};
    } catch (...) {
      generation_->break_off(error(Code::kOutOfMemory, "no memory for the answer as a message"));
    }
  }
  std::vector<ChatMessage>& messages = session_->chat_->conversation.messages;
  messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(before_), messages.end());
  return answered ? generation_->result().status : Status();
}

// What needs memory comes first.
void ChatTurn::add_answer() {
  const GenResult& result = generation_->result();
  std::vector<ChatMessage>& messages = session_->chat_->conversation.messages;
  std::string content = goes_on_ ? messages.back().content + result.text : result.text;
  std::optional<ChatSession::Cut> cut;
  const FinishReason end = result.finish_reason;
  if (end == FinishReason::kLength || end == FinishReason::kCancelled ||
      end == FinishReason::kCallback) {
    cut = ChatSession::Cut{messages.size() + (goes_on_ ? 0 : 1), content,
                           session_->session_->length()};
  }
  if (goes_on_) {
    messages.back().content = std::move(content);
  } else {
    messages.push_back({"assistant", std::move(content)});
  }
  session_->cut_ = std::move(cut);
}

}  // namespace gen::generate
