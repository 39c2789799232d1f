// SPDX-License-Identifier: Apache-2.0
// See supervisor.h.
#include "agent/supervisor.h"

#include <utility>

#include "agent/joined_cancel.h"
#include "base/json_text.h"
#include "calls/tool.h"
#include "grammar/schema/json_value.h"

namespace gen::agent {
namespace {

constexpr std::string_view kTaskSchema =
    R"({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"], )"
    R"("additionalProperties": false})";

// A member whose time is over stops, and is free for the next task.
int32_t stop_if_late(void* reply, const AgentEvent&) {
  return static_cast<const ToolReply*>(reply)->stopped() ? 1 : 0;
}

// Runs a member as a tool.
bool run_member(Agent& agent, const RunFrame& frame, const chat::ToolCall& call, ToolReply& reply) {
  const auto fail = [&](const char* why) {
    static_cast<void>(reply.write(why));
    return false;
  };
  const auto arguments = grammar::read_json(call.arguments);
  const grammar::JsonValue* const task = arguments.ok() ? arguments.value().find("task") : nullptr;
  if (task == nullptr || !task->is(grammar::JsonType::kString)) return fail("\"task\" is missing");
  AgentRecord record;
  const Status status = agent.run_alone(task->text, frame, stop_if_late, &reply, &record);
  if (!status.ok()) return fail(status.message());
  if (record.steps.empty() || !record.steps.back().calls.empty()) {
    return fail(
        (std::string("it stopped without an answer: ") + stop_reason_name(record.stop)).c_str());
  }
  return reply.write(record.final_output()).ok();
}

}  // namespace

Status Supervisor::add(std::string_view name, std::string_view description,
                       std::shared_ptr<Agent> agent) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the supervisor"));
  GEN_TRY(calls::make_tool(name, description, kTaskSchema));
  if (agent->session() == nullptr) {
    return {Code::kInvalidArgument, "an agent without a generator cannot be given tasks"};
  }
  for (const Member& member : members_) {
    if (member.name == name) {
      return error(Code::kInvalidArgument, "agent \"%s\" is there already", member.name.c_str());
    }
    if (member.agent == agent) {
      return error(Code::kInvalidArgument, "the agent is there already, as \"%s\"",
                   member.name.c_str());
    }
  }
  members_.push_back({std::string(name), std::string(description), std::move(agent)});
  return {};
}

Status Supervisor::set_budget(int64_t tokens) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the supervisor"));
  if (tokens < 0) {
    return error(Code::kInvalidArgument, "budget %lld is below 0", static_cast<long long>(tokens));
  }
  most_ = tokens;
  return {};
}

Status Supervisor::set_cancel(std::shared_ptr<const CancelFlag> cancel) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the supervisor"));
  given_cancel_ = std::move(cancel);
  return {};
}

Status Supervisor::run(std::string_view task, AgentCallback callback, void* user,
                       std::optional<generate::GenResult>* result) {
  result->reset();
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the supervisor"));
  if (members_.empty()) return {Code::kState, "the supervisor has no agents"};
  auto budget = std::make_shared<TokenBudget>();
  budget->most = most_;
  const RunFrame shared{{}, budget, joined_cancel({cancel_, given_cancel_})};
  RunFrame frame = shared;
  for (size_t i = 1; i < members_.size(); ++i) {
    const auto run = [agent = members_[i].agent, shared](const chat::ToolCall& call,
                                                         ToolReply& reply) {
      return run_member(*agent, shared, call, reply);
    };
    GEN_ASSIGN(auto tool,
               register_tool(members_[i].name, members_[i].description, kTaskSchema, run));
    frame.tools.push_back(std::move(tool));
  }
  budget_ = std::move(budget);
  Status status = members_.front().agent->run(task, frame, callback, user, result);
  if (status.code() == Code::kCancelled) cancel_->reset();
  return status;
}

Result<std::string> Supervisor::describe() const {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the supervisor"));
  std::string text = "{\"budget\":" + std::to_string(most_) +
                     ",\"spent\":" + std::to_string(budget_->spent.load()) + ",\"agents\":[";
  for (const Member& member : members_) {
    if (&member != &members_.front()) text += ',';
    GEN_ASSIGN(const std::string agent, member.agent->describe());
    text += "{\"name\":" + json_quote(member.name) +
            ",\"description\":" + json_quote(member.description) + ",\"agent\":" + agent + "}";
  }
  return text + "]}";
}

}  // namespace gen::agent
