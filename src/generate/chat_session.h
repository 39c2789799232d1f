// SPDX-License-Identifier: Apache-2.0
// ChatSession: a conversation and the session that holds its tokens. A turn adds a message,
// evaluates only the new tokens and generates the answer, pulled (ChatTurn) or pushed (send()).
// chat/chat_form.h turns a conversation into tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/in_use.h"
#include "base/status.h"
#include "chat/chat_form.h"
#include "generate/answer/answer_form.h"
#include "generate/answer/answer_reader.h"
#include "generate/answer/answer_rules.h"
#include "generate/answer/reasoning_limit.h"
#include "generate/chat_window.h"
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "generate/request/call_params.h"

namespace gen::generate {

/// A conversation that several owners may hold; only one uses it at a time.
struct Chat {
  chat::Conversation conversation;
  AnswerRules rules;
  InUseFlag in_use;
};

class ChatTurn;

/// Threads: one call at a time. A concurrent call, or one that finds the conversation in use, gets
/// kBusy.
class ChatSession final : public std::enable_shared_from_this<ChatSession> {
 public:
  /// kUnsupported for a model without a tokenizer; as Generator::new_session().
  static Result<std::shared_ptr<ChatSession>> create(
      const std::shared_ptr<const Generator>& generator, std::shared_ptr<Chat> chat);
  ChatSession(const ChatSession&) = delete;
  ChatSession& operator=(const ChatSession&) = delete;

  /// Begins the answer to the user's message. Without a message it continues this session's last
  /// answer if a limit, a cancel or a callback cut that answer and the conversation still ends with
  /// it; the session may hold other tokens by now. It is kState if the conversation ends with a
  /// different answer. A failure changes nothing. Errors as encode_chat(), Session::append_chat()
  /// and Generation::open().
  Result<std::unique_ptr<ChatTurn>> open(std::optional<std::string_view> message,
                                         const CallParams& params);
  /// Runs a whole turn, as run() in run.h.
  Status send(std::optional<std::string_view> message, const CallParams& params,
              EventCallback callback, void* user, std::optional<GenResult>* result);
  /// Ends the reasoning of the running answer. kState unless AnswerRules::may_end was set when the
  /// last turn began. Any thread.
  Status end_reasoning() noexcept;

  [[nodiscard]] const std::shared_ptr<Session>& session() const noexcept { return session_; }

 private:
  friend class ChatTurn;
  ChatSession(std::shared_ptr<const Generator> generator, std::shared_ptr<Chat> chat,
              std::shared_ptr<Session> session) noexcept;
  Result<std::unique_ptr<Generation>> answer(const CallParams& params, ChatTurn* turn);
  Result<std::unique_ptr<Generation>> go_on(const CallParams& params, ChatTurn* turn);
  Result<CallParams> prepare(CallParams params, ChatTurn* turn, std::string_view opening,
                             const WrittenAnswer& written, std::span<const int32_t> said);

  std::shared_ptr<const Generator> generator_;
  std::shared_ptr<Chat> chat_;
  std::shared_ptr<Session> session_;
  ChatWindow window_;
  int32_t keep_ = 0;  // number of tokens that the last formatted conversation began with
  /// The last answer, if it was cut and can be continued. It applies while the conversation is
  /// `messages`.
  struct Cut {
    std::vector<chat::ChatMessage> messages;
    std::vector<int32_t> held;  // tokens of the session at that time
    std::string unsaid;         // Answered::unsaid
    int32_t keep = 0;
    AnswerForm form;            // of the answer, if it is read
    std::string opening;        // as AnswerReader
    WrittenAnswer written;      // the same
    std::vector<int32_t> said;  // its tokens
    ReasoningLimit::Progress reasoning;
  };
  std::optional<Cut> cut_;
  /// The grammar of calls of the last turn, and what it was made of.
  struct Known {
    std::vector<std::string> tools;
    AnswerRules rules;
    std::shared_ptr<const calls::CallFormat> format;
    bool opened = false;
    std::shared_ptr<const grammar::Grammar> grammar;
  };
  std::optional<Known> known_;
  DerivedFormat derived_;
  std::shared_ptr<std::atomic<bool>> end_reasoning_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> may_end_ = false;
};

/// The answer to one message, pulled from its generation. The chat session and the conversation are
/// in use while it exists. Destroying it before its end stops it as a callback does.
class ChatTurn {
 public:
  ~ChatTurn();
  ChatTurn(const ChatTurn&) = delete;
  ChatTurn& operator=(const ChatTurn&) = delete;

  [[nodiscard]] Generation& generation() noexcept { return *generation_; }
  /// An event of the generation with what is read in its text; valid until the next call. Every
  /// event must be read. May throw std::bad_alloc.
  const Event& read(const Event& event);
  /// Call it when the generation may have ended. At the end it adds the message and the answer to
  /// the conversation; a cut answer is added as far as it came. If no token was generated, or after
  /// a failure, the conversation is unchanged. Before the end, and after the first call at the end,
  /// it does nothing. If memory runs out the generation fails, and that status is returned.
  Status note_end() noexcept;

 private:
  friend class ChatSession;
  ChatTurn(std::shared_ptr<ChatSession> session, InUseGuard guard) noexcept;
  void add_answer();

  std::shared_ptr<ChatSession> session_;
  InUseGuard guard_;  // the conversation is in use
  size_t before_;     // number of messages before the turn
  bool goes_on_ = false;
  std::unique_ptr<AnswerReader> reader_;  // null: answers are not read
  AnswerForm form_;
  std::vector<int32_t> said_;              // before this turn, of the same answer
  ReasoningLimit::Progress reasoning_;     // the same
  std::shared_ptr<ReasoningLimit> limit_;  // null: none
  Event event_;
  std::vector<calls::Piece> plain_;  // of an answer that is not read
  bool noted_ = false;
  std::unique_ptr<Generation> generation_;
};

}  // namespace gen::generate
