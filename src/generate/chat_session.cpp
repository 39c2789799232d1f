// SPDX-License-Identifier: Apache-2.0
// See chat_session.h.
#include "generate/chat_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chat/chat_borders.h"
#include "generate/loop/run.h"

namespace gen::generate {
namespace {

using chat::ChatMessage;

bool ends_with_answer(const std::vector<ChatMessage>& messages) {
  return !messages.empty() && messages.back().role == "assistant" &&
         messages.back().tool_calls.empty();
}

}  // namespace

ChatSession::ChatSession(std::shared_ptr<const Generator> generator, std::shared_ptr<Chat> chat,
                         std::shared_ptr<Session> session) noexcept
    : generator_(std::move(generator)),
      chat_(std::move(chat)),
      session_(std::move(session)),
      window_(generator_->tokenizer(), generator_->max_seq_len()) {}

Result<std::shared_ptr<ChatSession>> ChatSession::create(
    const std::shared_ptr<const Generator>& generator, std::shared_ptr<Chat> chat) {
  if (generator->tokenizer() == nullptr) {
    return error(Code::kUnsupported, "the model has no tokenizer, and so no chat template");
  }
  GEN_ASSIGN(auto session, generator->new_session());
  return std::shared_ptr<ChatSession>(
      new ChatSession(generator, std::move(chat), std::move(session)));
}

Result<std::unique_ptr<Generation>> ChatSession::answer(const CallParams& params) {
  const chat::Conversation& all = chat_->conversation;
  const auto context = static_cast<size_t>(generator_->max_seq_len());
  const bool shifts = generator_->options().shift_context;
  std::vector<int32_t> ids;
  if (shifts) {
    const auto most = static_cast<size_t>(params.stops.effective_max_new_tokens());
    GEN_ASSIGN(ids, window_.fit(all, std::min(most, context / 4)));
  } else {
    GEN_TRY(chat::encode_chat(*generator_->tokenizer(), all, true, &ids));
  }
  if (ids.empty()) {
    return error(Code::kInvalidArgument, "the chat template makes nothing of the conversation");
  }
  if (ids.size() >= context) {
    return error(
        Code::kContextFull,
        "the conversation of %zu tokens leaves no room for an answer in the context of %zu",
        ids.size(), context);
  }
  if (shifts) keep_ = window_.lead_tokens(all);
  GEN_TRY(session_->set_keep(keep_));
  std::vector<int32_t> borders;
  if (session_->keeps_snapshots()) borders = chat_borders(*generator_->tokenizer(), all, ids);
  return session_->open({.tokens = ids, .kind = Prompt::Kind::kWholeChat, .borders = borders},
                        params);
}

Result<std::unique_ptr<Generation>> ChatSession::go_on(const CallParams& params) {
  keep_ = cut_->keep;
  GEN_TRY(session_->set_keep(keep_));
  return session_->open(
      {.tokens = cut_->held, .kind = Prompt::Kind::kWhole, .unsaid = cut_->unsaid}, params);
}

Result<std::unique_ptr<ChatTurn>> ChatSession::open(std::optional<std::string_view> message,
                                                    const CallParams& params) {
  InUseGuard guard(&chat_->in_use);
  GEN_TRY(guard.entered("the conversation"));
  std::unique_ptr<ChatTurn> turn(new ChatTurn(shared_from_this(), std::move(guard)));
  std::vector<ChatMessage>& messages = chat_->conversation.messages;
  if (message.has_value()) {
    GEN_ASSIGN(ChatMessage said, chat::chat_message("user", *message));
    messages.push_back(std::move(said));
  }
  turn->goes_on_ = ends_with_answer(messages) && cut_.has_value() && cut_->messages == messages;
  if (ends_with_answer(messages) && !turn->goes_on_) {
    return error(Code::kState, "the conversation ends with an answer: add a message to it");
  }
  GEN_ASSIGN(turn->generation_, turn->goes_on_ ? go_on(params) : answer(params));
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
  // An empty answer of the model is an answer; one that is empty because the context is full is
  // not.
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

// Allocates first, so that a failure changes nothing.
void ChatTurn::add_answer() {
  const GenResult& result = generation_->result();
  std::vector<ChatMessage>& messages = session_->chat_->conversation.messages;
  std::vector<ChatMessage> all = messages;
  if (goes_on_) {
    all.back().content += result.text;
  } else {
    all.push_back({"assistant", result.text});
  }
  std::optional<ChatSession::Cut> cut;
  const FinishReason end = result.finish_reason;
  if (!generation_->text_is_whole() &&
      (end == FinishReason::kLength || end == FinishReason::kCancelled ||
       end == FinishReason::kCallback)) {
    const std::span<const int32_t> held = generation_->held();
    cut = ChatSession::Cut{all, {held.begin(), held.end()}, generation_->unsaid(), session_->keep_};
  }
  messages = std::move(all);
  session_->cut_ = std::move(cut);
}

}  // namespace gen::generate
