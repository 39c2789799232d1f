// SPDX-License-Identifier: Apache-2.0
// See agent_record.h.
#include "agent/agent_record.h"

#include "base/json_text.h"

namespace gen::agent {
namespace {

template <typename T, typename F>
std::string json_list(const std::vector<T>& all, F&& text_of) {
  std::string text = "[";
  for (const T& one : all) {
    if (text.size() > 1) text += ',';
    text += text_of(one);
  }
  return text + "]";
}

std::string describe_calls(const std::vector<chat::ToolCall>& calls) {
  return json_list(calls, [](const chat::ToolCall& call) {
    return "{\"id\":" + json_quote(call.id) + ",\"name\":" + json_quote(call.name) +
           ",\"arguments\":" + (call.arguments.empty() ? "{}" : call.arguments) + "}";
  });
}

std::string describe_faults(const std::vector<calls::Fault>& faults) {
  return json_list(faults, [](const calls::Fault& fault) {
    return "{\"at\":" + std::to_string(fault.at) + ",\"what\":" + json_quote(fault.what) + "}";
  });
}

std::string describe_step(const AgentStep& step) {
  return "{\"step\":" + std::to_string(step.number) +
         ",\"model_output\":" + json_quote(step.output) + ",\"text\":" + json_quote(step.text) +
         ",\"reasoning\":" + json_quote(step.reasoning) +
         ",\"calls\":" + describe_calls(step.calls) +
         ",\"results\":" + json_list(step.results, format_result) +
         ",\"faults\":" + describe_faults(step.faults) +
         ",\"tokens\":" + std::to_string(step.tokens) + "}";
}

}  // namespace

const char* stop_reason_name(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::kNone:
      return "";
    case StopReason::kNoTools:
      return "no_tools";
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kToolError:
      return "tool_error";
    case StopReason::kMaxSteps:
      return "max_steps";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "";
}

std::string AgentRecord::final_output() const {
  if (steps.empty()) return "";
  const AgentStep& last = steps.back();
  return last.calls.empty() ? last.text : last.output;
}

std::string AgentRecord::describe() const {
  return "{\"steps\":" + json_list(steps, describe_step) +
         ",\"finished\":" + (finished() ? "true" : "false") +
         ",\"final_output\":" + json_quote(final_output()) +
         ",\"total_tokens\":" + std::to_string(total_tokens) + ",\"stop_reason\":\"" +
         stop_reason_name(stop) + "\"}";
}

}  // namespace gen::agent
