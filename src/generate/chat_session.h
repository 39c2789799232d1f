// SPDX-License-Identifier: Apache-2.0
// ChatSession: a conversation and the session that holds it. It takes a message and answers; each
// turn evaluates what is new, and is pulled or pushed (ChatTurn, send()). How a conversation
// becomes tokens is in chat/chat_form.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/in_use.h"
#include "base/status.h"
#include "chat/chat_form.h"
#include "generate/chat_window.h"
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "generate/request/call_params.h"

namespace gen::generate {

/// A conversation that several may hold, one of whom uses it at a time.
struct Chat {
  chat::Conversation conversation;
  InUseFlag in_use;
};

class ChatTurn;

/// Threads: one call at a time, a second one gets kBusy, as does one that finds the chat in use.
class ChatSession final : public std::enable_shared_from_this<ChatSession> {
 public:
  /// kUnsupported for a model without a tokenizer; as Generator::new_session().
  static Result<std::shared_ptr<ChatSession>> create(
      const std::shared_ptr<const Generator>& generator, std::shared_ptr<Chat> chat);
  ChatSession(const ChatSession&) = delete;
  ChatSession& operator=(const ChatSession&) = delete;

  /// Begins the answer to the user's message, if there is one. Without one where the conversation
  /// is the one that this session's last answer ended, and a limit, a cancel or a callback cut
  /// that, it goes on, whatever the session holds by now; where it ends with another answer,
  /// kState. A failure changes nothing; errors as encode_chat(), Session::append_chat() and
  /// Generation::open().
  Result<std::unique_ptr<ChatTurn>> open(std::optional<std::string_view> message,
                                         const CallParams& params);
  /// A whole turn; the rest as run() of run.h.
  Status send(std::optional<std::string_view> message, const CallParams& params,
              EventCallback callback, void* user, std::optional<GenResult>* result);

  [[nodiscard]] const std::shared_ptr<Session>& session() const noexcept { return session_; }

 private:
  friend class ChatTurn;
  ChatSession(std::shared_ptr<const Generator> generator, std::shared_ptr<Chat> chat,
              std::shared_ptr<Session> session) noexcept;
  Result<std::unique_ptr<Generation>> answer(const CallParams& params);
  Result<std::unique_ptr<Generation>> go_on(const CallParams& params);

  std::shared_ptr<const Generator> generator_;
  std::shared_ptr<Chat> chat_;
  std::shared_ptr<Session> session_;
  ChatWindow window_;
  int32_t keep_ = 0;  // tokens with which what was last laid out began
  /// The last answer that may go on: where the conversation is these messages, its end.
  struct Cut {
    std::vector<chat::ChatMessage> messages;
    std::vector<int32_t> held;  // by the session at that time
    std::string unsaid;         // Answered::unsaid
    int32_t keep = 0;
  };
  std::optional<Cut> cut_;
};

/// The answer to one message, pulled from its generation. While it lives the chat session and the
/// conversation are in use. Destroying it before its end stops it as a callback does.
class ChatTurn {
 public:
  ~ChatTurn();
  ChatTurn(const ChatTurn&) = delete;
  ChatTurn& operator=(const ChatTurn&) = delete;

  [[nodiscard]] Generation& generation() noexcept { return *generation_; }
  /// To be called when the generation may have ended. Then the message and the answer, if it was
  /// cut as far as it came, are in the conversation; where no token came, and after a failure, that
  /// is as before. Does nothing before the end and the second time. Without memory for it the
  /// generation fails, which this returns.
  Status note_end() noexcept;

 private:
  friend class ChatSession;
  ChatTurn(std::shared_ptr<ChatSession> session, InUseGuard guard) noexcept;
  void add_answer();

  std::shared_ptr<ChatSession> session_;
  InUseGuard guard_;  // of the conversation
  size_t before_;     // messages
  bool goes_on_ = false;
  bool noted_ = false;
  std::unique_ptr<Generation> generation_;
};

}  // namespace gen::generate
