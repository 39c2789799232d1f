// SPDX-License-Identifier: Apache-2.0
// Agent: a conversation in which a model calls tools: it answers, its calls are run, their results
// become messages, and it answers again, until an answer has no calls or a limit is reached. The
// answers are those of a chat session, or texts of the caller's own model.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent_record.h"
#include "agent/tool_registry.h"
#include "agent/tool_runner.h"
#include "base/cancel.h"
#include "base/in_use.h"
#include "base/status.h"
#include "calls/call_format.h"
#include "generate/chat_session.h"
#include "generate/loop/generator.h"
#include "generate/request/call_params.h"
#include "generate/request/result.h"

namespace gen::agent {

constexpr int32_t kDefaultMaxSteps = 10;

struct AgentOptions {
  int32_t max_steps = kDefaultMaxSteps;  // 0 or less: the default
  int32_t max_tokens = 0;                // of all answers of a run; 0: no limit
  bool stop_on_tool_error = false;
  int32_t tool_timeout_ms = 0;
  int32_t tool_threads = 0;
  bool check_arguments = true;
  int32_t max_result_bytes = 65536;  // 0: no limit
  std::string system;
  std::string call_format = "auto";  // of answers
  std::string tool_choice;           // of a run's first step; empty: as the conversation's rules
  generate::CallParams call = default_call();  // how answers are generated

  static constexpr int32_t kDefaultMaxNewTokens = 2048;  // of an answer: calls need room
  static generate::CallParams default_call();
};

/// The numbers are part of the ABI and equal GEN_AGENT_*.
struct AgentEvent {
  enum class Kind : int32_t {
    kText = 0,
    kReasoning = 1,
    kCallName = 2,
    kArguments = 3,
    kCallEnd = 4,
    kCallBroken = 5,
    kStepBegan = 6,
    kToolBegan = 7,
    kToolEnded = 8,
    kStepEnded = 9,
  };
  Kind kind = Kind::kText;
  int32_t step = 0;   // from 1
  int32_t call = -1;  // number of the call in its step
  bool is_error = false;
  std::string_view name = "";  // of the tool
  std::string_view id = "";    // of the call
  std::string_view text = "";  // a NUL follows
};

/// Non-zero stops the run.
using AgentCallback = int32_t (*)(void* user, const AgentEvent& event);

/// Tokens that several agents share. Threads: any.
struct TokenBudget {
  std::atomic<int64_t> spent{0};
  int64_t most = 0;  // 0: no limit

  [[nodiscard]] int64_t left() const noexcept {
    return most == 0 ? INT64_MAX : most - spent.load(std::memory_order_relaxed);
  }
};

/// What a supervisor adds to a run.
struct RunFrame {
  std::vector<std::shared_ptr<const RegisteredTool>> tools;
  std::shared_ptr<TokenBudget> budget;       // may be null
  std::shared_ptr<const CancelFlag> cancel;  // may be null
};

/// Threads: one call at a time; a concurrent one gets kBusy. cancel() may be called at any time.
class Agent {
 public:
  /// `generator` may be null. kInvalidArgument for an unknown format or choice; as
  /// ChatSession::create().
  static Result<std::shared_ptr<Agent>> create(
      const std::shared_ptr<const generate::Generator>& generator,
      std::shared_ptr<ToolRegistry> registry, AgentOptions options);

  /// Adds a message of the user, if there is one, and runs steps until one finishes. A step that
  /// fails or is cancelled leaves nothing behind; if it is the first one, neither does the message.
  /// Steps before it stay, since their tools have run. `result` receives that of the last answer.
  /// kState without a generator; kCancelled; as ChatSession::send().
  Status run(std::optional<std::string_view> task, const RunFrame& frame, AgentCallback callback,
             void* user, std::optional<generate::GenResult>* result);
  /// reset(), run() and record(), with the agent in use all the time; a cancel is not forgotten.
  Status run_alone(std::string_view task, const RunFrame& frame, AgentCallback callback, void* user,
                   AgentRecord* record);
  /// One step: with `output` as the model's answer, or with a generated one. A step after the last
  /// one of a run begins a new record. kInvalidArgument for an output that is not UTF-8; as run().
  Status step(std::optional<std::string_view> output, AgentCallback callback, void* user,
              bool* finished);

  /// The next cancelled call, running or not, returns kCancelled.
  void cancel() noexcept { own_cancel_->fire(); }
  /// Sets a flag that cancels calls while it is raised; null: none. kBusy.
  Status set_cancel(std::shared_ptr<const CancelFlag> cancel);
  /// Forgets the conversation, its steps and a cancel. kBusy.
  Status reset();
  /// kBusy.
  Result<std::string> describe() const;
  Result<AgentRecord> record() const;

  [[nodiscard]] const std::shared_ptr<generate::Chat>& chat() const noexcept { return chat_; }
  /// Null without a generator.
  [[nodiscard]] const std::shared_ptr<generate::ChatSession>& session() const noexcept {
    return session_;
  }

 private:
  class Turn;
  Agent(std::shared_ptr<ToolRegistry> registry, AgentOptions options);
  Status run_held(std::optional<std::string_view> task, const RunFrame& frame,
                  AgentCallback callback, void* user, std::optional<generate::GenResult>* result);
  Result<bool> generated_step(std::optional<std::string_view> task, Turn* turn,
                              std::optional<generate::GenResult>* result);
  Result<bool> given_step(std::string_view output, Turn* turn);
  Result<bool> finish_step(AgentStep step, bool over, Turn* turn);
  void keep_step(AgentStep step, StopReason stop, Turn* turn);
  Status stopped(Turn* turn) noexcept;
  [[nodiscard]] int64_t tokens_left(const Turn& turn) const noexcept;
  [[nodiscard]] Result<std::shared_ptr<const calls::CallFormat>> format_of_given();

  std::shared_ptr<ToolRegistry> registry_;
  AgentOptions options_;
  generate::DerivedFormat derived_;
  std::shared_ptr<const generate::Generator> generator_;
  std::shared_ptr<generate::Chat> chat_ = std::make_shared<generate::Chat>();
  /// The conversation of the running step; `chat_` gets it when the step is complete.
  std::shared_ptr<generate::Chat> work_ = std::make_shared<generate::Chat>();
  std::shared_ptr<generate::ChatSession> session_;  // of `work_`
  std::shared_ptr<CancelFlag> own_cancel_ = std::make_shared<CancelFlag>();
  std::shared_ptr<const CancelFlag> given_cancel_;  // may be null
  AgentRecord record_;
  mutable InUseFlag in_use_;
};

}  // namespace gen::agent
