// SPDX-License-Identifier: Apache-2.0
// Agent::Turn: what one call of run() or step() has: its callback, its flags and its tools.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/agent.h"

namespace gen::agent {

class Agent::Turn final : public RunnerEvents {
 public:
  /// `fresh`: the first step begins a new record.
  Turn(const Agent& agent, const RunFrame& frame, AgentCallback callback, void* user, bool fresh);

  /// Null if there is no such tool.
  [[nodiscard]] std::shared_ptr<const RegisteredTool> tool(std::string_view name) const;
  /// The descriptions of all tools, in OpenAI's form. kInvalidArgument if two have one name.
  [[nodiscard]] Result<std::vector<std::string>> descriptions() const;

  void begin_step();
  void end_step(const AgentStep& step);
  /// As generate::EventCallback; `self` is the turn.
  static int32_t take_event(void* self, const generate::Event& event);
  /// The calls whose running the events are about.
  void set_calls(const std::vector<chat::ToolCall>* calls) noexcept { calls_ = calls; }
  void began(size_t call) override;
  void ended(size_t call, const ToolResult& result) override;

  /// The callback stopped the run or threw.
  [[nodiscard]] bool stopped() const noexcept override { return stopped_; }
  [[nodiscard]] bool cancelled() const noexcept { return cancel_->raised(); }
  [[nodiscard]] const Status& thrown() const noexcept { return thrown_; }
  [[nodiscard]] const std::shared_ptr<const CancelFlag>& cancel() const noexcept { return cancel_; }
  [[nodiscard]] TokenBudget* budget() const noexcept { return frame_.budget.get(); }
  [[nodiscard]] bool fresh() const noexcept { return fresh_; }
  void note_kept() noexcept { fresh_ = false; }
  [[nodiscard]] int32_t number() const noexcept { return number_; }

 private:
  void tell(AgentEvent event);

  const Agent& agent_;
  const RunFrame& frame_;
  AgentCallback callback_;
  void* user_;
  std::shared_ptr<const CancelFlag> cancel_;
  const std::vector<chat::ToolCall>* calls_ = nullptr;
  int32_t number_ = 0;  // of the step
  bool fresh_;
  bool stopped_ = false;
  Status thrown_;
};

}  // namespace gen::agent
