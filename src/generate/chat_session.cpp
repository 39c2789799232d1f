// SPDX-License-Identifier: Apache-2.0
// See chat_session.h.
#include "generate/chat_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chat/chat_borders.h"
#include "generate/loop/run.h"
#include "grammar/mask/vocabulary.h"
#include "grammar/matcher/matcher.h"

namespace gen::generate {
namespace {

using chat::ChatMessage;

bool ends_with_answer(const std::vector<ChatMessage>& messages) {
  return !messages.empty() && messages.back().role == "assistant" &&
         messages.back().tool_calls.empty();
}

// The matcher of a grammar behind `said`; null if the text left the grammar.
Result<std::shared_ptr<const grammar::Matcher>> matcher_behind(
    const std::shared_ptr<const grammar::Grammar>& grammar, const tokenizer::Tokenizer& tokenizer,
    std::span<const int32_t> said) {
  using Made = std::shared_ptr<const grammar::Matcher>;
  GEN_ASSIGN(const auto vocabulary, grammar::Vocabulary::of(tokenizer));
  GEN_ASSIGN(auto over, grammar->over(vocabulary));
  GEN_ASSIGN(auto matcher, grammar::Matcher::create(std::move(over)));
  for (const int32_t token : said) {
    GEN_ASSIGN(const bool fits, matcher.accept_token(token));
    if (!fits) return Made();
  }
  return Made(std::make_shared<const grammar::Matcher>(std::move(matcher)));
}

bool same_format(const std::shared_ptr<const calls::CallFormat>& a,
                 const std::shared_ptr<const calls::CallFormat>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

struct Relay {
  ChatTurn* turn;
  EventCallback callback;  // may be null
  void* user;
};

int32_t relay_event(void* user, const Event& event) {
  const Relay& relay = *static_cast<Relay*>(user);
  const Event& read = relay.turn->read(event);
  return relay.callback != nullptr ? relay.callback(relay.user, read) : 0;
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

// What is read of the answer, and what constrains it.
Result<CallParams> ChatSession::prepare(CallParams params, ChatTurn* turn, std::string_view opening,
                                        const WrittenAnswer& written,
                                        std::span<const int32_t> said) {
  const tokenizer::Tokenizer& tokenizer = *generator_->tokenizer();
  const AnswerRules& rules = chat_->rules;
  const AnswerForm& form = turn->form_;
  if (form.format != nullptr) {
    turn->reader_ = std::make_unique<AnswerReader>(form, tokenizer, opening, written);
  }
  if (params.grammar == nullptr && params.matcher == nullptr) {
    const bool opened =
        form.format != nullptr && AnswerReader(form, tokenizer, opening, {}).in_reasoning();
    const bool same = known_.has_value() && known_->tools == form.described &&
                      known_->rules == rules && same_format(known_->format, form.format) &&
                      known_->opened == opened;
    if (!same) {
      GEN_ASSIGN(auto grammar, answer_grammar(form, rules, tokenizer, opened));
      known_ = Known{form.described, rules, form.format, opened, std::move(grammar)};
    }
    params.grammar = known_->grammar;
    // Free text that a limit cuts is not complete.
    params.names_limits = rules.response.empty();
    if (params.grammar != nullptr && !said.empty()) {
      GEN_ASSIGN(params.matcher, matcher_behind(params.grammar, tokenizer, said));
      params.grammar = nullptr;
    }
  }
  end_reasoning_->store(false, std::memory_order_relaxed);
  may_end_.store(rules.may_end, std::memory_order_relaxed);
  if (form.format == nullptr || reasoning_end(*form.format).empty()) return params;
  AnswerRules limits = rules;
  if (rules.reasoning == AnswerRules::Reasoning::kOff && limits.budget < 0) {
    limits.budget = 0;  // for templates that have no switch
    limits.budget_text.clear();
  }
  if (limits.budget < 0 && !limits.may_end && turn->reasoning_.closing.empty()) return params;
  GEN_ASSIGN(turn->limit_, ReasoningLimit::make(form, generator_->shared_tokenizer(), opening,
                                                written, limits, end_reasoning_));
  turn->limit_->go_on_from(turn->reasoning_);
  GEN_TRY(turn->limit_->check_vocab(generator_->vocab_size()));
  return with_limit(std::move(params), turn->limit_);
}

Result<std::unique_ptr<Generation>> ChatSession::answer(const CallParams& params, ChatTurn* turn) {
  const tokenizer::Tokenizer& tokenizer = *generator_->tokenizer();
  const AnswerRules& rules = chat_->rules;
  const bool as_it_is =
      rules.reasoning == AnswerRules::Reasoning::kTemplate && rules.effort.empty();
  std::optional<chat::Conversation> changed;
  if (!as_it_is) changed = with_reasoning(chat_->conversation, rules, tokenizer);
  const chat::Conversation& all = changed.has_value() ? *changed : chat_->conversation;
  GEN_ASSIGN(turn->form_, answer_form(tokenizer, all, rules, &derived_));
  std::string opening;
  if (turn->form_.format != nullptr) {
    GEN_ASSIGN(opening, chat::chat_opening(tokenizer, all));
  }
  GEN_ASSIGN(const CallParams prepared, prepare(params, turn, opening, {}, {}));
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
  if (session_->keeps_points()) borders = chat_borders(*generator_->tokenizer(), all, ids);
  return session_->open({.tokens = ids,
                         .kind = Prompt::Kind::kWholeChat,
                         .borders = borders,
                         .left_out = shifts ? window_.left_out() : 0},
                        prepared);
}

Result<std::unique_ptr<Generation>> ChatSession::go_on(const CallParams& params, ChatTurn* turn) {
  turn->form_ = cut_->form;
  turn->said_ = cut_->said;
  turn->reasoning_ = cut_->reasoning;
  GEN_ASSIGN(const CallParams prepared,
             prepare(params, turn, cut_->opening, cut_->written, cut_->said));
  keep_ = cut_->keep;
  GEN_TRY(session_->set_keep(keep_));
  return session_->open(
      {.tokens = cut_->held, .kind = Prompt::Kind::kWhole, .unsaid = cut_->unsaid}, prepared);
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
  turn->goes_on_ = cut_.has_value() && cut_->messages == messages;
  if (ends_with_answer(messages) && !turn->goes_on_) {
    return error(Code::kState, "the conversation ends with an answer: add a message to it");
  }
  GEN_ASSIGN(turn->generation_,
             turn->goes_on_ ? go_on(params, turn.get()) : answer(params, turn.get()));
  return turn;
}

Status ChatSession::end_reasoning() noexcept {
  if (!may_end_.load(std::memory_order_relaxed)) {
    return {Code::kState, "reasoning_control was not on when the turn began"};
  }
  end_reasoning_->store(true, std::memory_order_relaxed);
  return {};
}

Status ChatSession::send(std::optional<std::string_view> message, const CallParams& params,
                         EventCallback callback, void* user, std::optional<GenResult>* result) {
  result->reset();
  GEN_ASSIGN(const auto turn, open(message, params));
  Relay relay{turn.get(), callback, user};
  Status status = pull_all(&turn->generation(), relay_event, &relay);
  if (!turn->generation().ended()) return status;
  if (Status noted = turn->note_end(); !noted.ok()) status = std::move(noted);
  result->emplace(turn->generation().take_result());
  return status;
}

ChatTurn::ChatTurn(std::shared_ptr<ChatSession> session, InUseGuard guard) noexcept
    : session_(std::move(session)),
      guard_(std::move(guard)),
      before_(session_->chat_->conversation.messages.size()) {}

const Event& ChatTurn::read(const Event& event) {
  event_ = event;
  if (reader_ != nullptr) {
    event_.pieces = reader_->take(event);
  } else {
    plain_ = {{calls::PieceKind::kText, 0, std::string(event.text)}};
    if (!event.text.empty()) event_.pieces = plain_;
  }
  return event_;
}

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
  if (!goes_on_) all.push_back({"assistant", ""});
  ChatMessage& message = all.back();
  std::shared_ptr<const calls::Answer> read;
  if (reader_ == nullptr) {
    message.content += result.text;
  } else {
    reader_->finish();
    auto answer = std::make_shared<calls::Answer>(reader_->answer());
    message.content = answer->text;
    message.reasoning = session_->chat_->rules.keep_reasoning ? answer->reasoning : "";
    message.tool_calls.clear();
    for (const calls::Call& call : answer->calls) {
      message.tool_calls.push_back({call.id, call.name, call.arguments});
    }
    if (!answer->calls.empty()) {
      message.written = reader_->written().text;
      message.controls = reader_->written().controls;
    }
    // The calls that a cut answer had keep theirs.
    give_ids(*form_.format, std::span(messages).first(messages.size() - (goes_on_ ? 1 : 0)),
             &message.tool_calls);
    for (size_t i = 0; i < answer->calls.size(); ++i) {
      answer->calls[i].id = message.tool_calls[i].id;
    }
    read = std::move(answer);
  }
  std::optional<ChatSession::Cut> cut;
  const FinishReason end = result.finish_reason;
  if (!generation_->text_is_whole() &&
      (end == FinishReason::kLength || end == FinishReason::kCancelled ||
       end == FinishReason::kCallback)) {
    const std::span<const int32_t> held = generation_->held();
    std::vector<int32_t> said = said_;
    said.insert(said.end(), result.tokens.begin(), result.tokens.end());
    ReasoningLimit::Progress reasoning = reasoning_;
    if (limit_ != nullptr) {
      auto progress = limit_->progress(held, result.tokens.size());
      if (progress.ok()) reasoning = std::move(progress).value();
    }
    cut = ChatSession::Cut{all,
                           {held.begin(), held.end()},
                           generation_->unsaid(),
                           session_->keep_,
                           form_,
                           reader_ != nullptr ? reader_->opening() : std::string(),
                           reader_ != nullptr ? reader_->written() : WrittenAnswer(),
                           std::move(said),
                           std::move(reasoning)};
  }
  if (read != nullptr) generation_->set_answer(std::move(read));
  messages = std::move(all);
  session_->cut_ = std::move(cut);
}

}  // namespace gen::generate
