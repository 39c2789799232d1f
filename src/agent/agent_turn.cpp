// SPDX-License-Identifier: Apache-2.0
// See agent_turn.h.
#include "agent/agent_turn.h"

#include <utility>

#include "agent/joined_cancel.h"
#include "generate/loop/run.h"

namespace gen::agent {
namespace {

constexpr AgentEvent::Kind kind_of(calls::PieceKind kind) noexcept {
  switch (kind) {
    case calls::PieceKind::kText:
      return AgentEvent::Kind::kText;
    case calls::PieceKind::kReasoning:
      return AgentEvent::Kind::kReasoning;
    case calls::PieceKind::kCallName:
      return AgentEvent::Kind::kCallName;
    case calls::PieceKind::kArguments:
      return AgentEvent::Kind::kArguments;
    case calls::PieceKind::kCallEnd:
      return AgentEvent::Kind::kCallEnd;
    case calls::PieceKind::kCallBroken:
      return AgentEvent::Kind::kCallBroken;
  }
  return AgentEvent::Kind::kText;
}

}  // namespace

Agent::Turn::Turn(const Agent& agent, const RunFrame& frame, AgentCallback callback, void* user,
                  bool fresh)
    : agent_(agent), frame_(frame), callback_(callback), user_(user), fresh_(fresh) {
  cancel_ = joined_cancel(
      {agent.own_cancel_, agent.given_cancel_, frame.cancel, agent.options_.call.cancel});
}

std::shared_ptr<const RegisteredTool> Agent::Turn::tool(std::string_view name) const {
  for (const auto& one : frame_.tools) {
    if (one->tool.name == name) return one;
  }
  return agent_.registry_->find(name);
}

Result<std::vector<std::string>> Agent::Turn::descriptions() const {
  std::vector<std::string> texts;
  for (const auto& one : agent_.registry_->all()) texts.push_back(calls::describe_tool(one->tool));
  for (const auto& one : frame_.tools) {
    if (agent_.registry_->find(one->tool.name) != nullptr) {
      return error(Code::kInvalidArgument, "the agent has a tool \"%s\" of its own",
                   one->tool.name.c_str());
    }
    texts.push_back(calls::describe_tool(one->tool));
  }
  return texts;
}

void Agent::Turn::begin_step() {
  number_ = fresh_ ? 1 : static_cast<int32_t>(agent_.record_.steps.size()) + 1;
  tell({.kind = AgentEvent::Kind::kStepBegan});
}

void Agent::Turn::end_step(const AgentStep& step) {
  tell({.kind = AgentEvent::Kind::kStepEnded, .text = step.output});
}

int32_t Agent::Turn::take_event(void* self, const generate::Event& event) {
  Turn& turn = *static_cast<Turn*>(self);
  for (const calls::Piece& piece : event.pieces) {
    const bool of_call =
        piece.kind != calls::PieceKind::kText && piece.kind != calls::PieceKind::kReasoning;
    const bool names = piece.kind == calls::PieceKind::kCallName;
    turn.tell({.kind = kind_of(piece.kind),
               .call = of_call ? static_cast<int32_t>(piece.call) : -1,
               .name = names ? std::string_view(piece.text) : std::string_view(""),
               .text = piece.text});
  }
  return turn.stopped_ ? 1 : 0;
}

void Agent::Turn::began(size_t call) {
  const chat::ToolCall& it = (*calls_)[call];
  tell({.kind = AgentEvent::Kind::kToolBegan,
        .call = static_cast<int32_t>(call),
        .name = it.name,
        .id = it.id,
        .text = it.arguments});
}

void Agent::Turn::ended(size_t call, const ToolResult& result) {
  const chat::ToolCall& it = (*calls_)[call];
  tell({.kind = AgentEvent::Kind::kToolEnded,
        .call = static_cast<int32_t>(call),
        .is_error = result.is_error,
        .name = it.name,
        .id = it.id,
        .text = result.output});
}

void Agent::Turn::tell(AgentEvent event) {
  if (callback_ == nullptr || stopped_) return;
  event.step = number_;
  try {
    stopped_ = callback_(user_, event) != 0;
  } catch (...) {
    thrown_ = generate::callback_failure();
    stopped_ = true;
  }
}

}  // namespace gen::agent
