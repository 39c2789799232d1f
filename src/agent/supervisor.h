// SPDX-License-Identifier: Apache-2.0
// Supervisor: several agents on one task. The first one gets it, and may give parts of it to the
// others, which are tools to it; all share one budget of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "base/cancel.h"
#include "base/in_use.h"
#include "base/status.h"

namespace gen::agent {

/// Threads: one call at a time; a concurrent one gets kBusy. cancel() may be called at any time.
class Supervisor {
 public:
  /// kInvalidArgument for a name that is no tool's, for a name or an agent that is there already,
  /// and for an agent without a generator.
  Status add(std::string_view name, std::string_view description, std::shared_ptr<Agent> agent);
  /// Tokens of all answers of a run; 0: no limit.
  Status set_budget(int64_t tokens);
  /// As Agent::set_cancel().
  Status set_cancel(std::shared_ptr<const CancelFlag> cancel);
  /// As Agent::run() of the first agent. Each of the others begins every task of it with an empty
  /// conversation. kState without agents.
  Status run(std::string_view task, AgentCallback callback, void* user,
             std::optional<generate::GenResult>* result);
  /// A JSON object. kBusy.
  Result<std::string> describe() const;
  void cancel() noexcept { cancel_->fire(); }

 private:
  struct Member {
    std::string name, description;
    std::shared_ptr<Agent> agent;
  };

  std::vector<Member> members_;
  std::shared_ptr<TokenBudget> budget_ = std::make_shared<TokenBudget>();  // of the last run
  int64_t most_ = 0;
  std::shared_ptr<CancelFlag> cancel_ = std::make_shared<CancelFlag>();
  std::shared_ptr<const CancelFlag> given_cancel_;  // may be null
  mutable InUseFlag in_use_;
};

}  // namespace gen::agent
