// SPDX-License-Identifier: Apache-2.0
// AgentRecord: the steps of an agent's run, as plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/tool_result.h"
#include "calls/call_parser.h"
#include "chat/conversation.h"

namespace gen::agent {

struct AgentStep {
  int32_t number = 0;  // from 1
  std::string output;  // as the model wrote it
  std::string text;    // of it, without reasoning and calls
  std::string reasoning;
  std::vector<chat::ToolCall> calls;
  std::vector<ToolResult> results;  // one for each call
  std::vector<calls::Fault> faults;
  int64_t tokens = 0;  // of the output
};

/// The numbers are part of the ABI and equal GEN_AGENT_STOP_*.
enum class StopReason : int32_t {
  kNone = 0,
  kNoTools = 1,
  kMaxTokens = 2,
  kToolError = 3,
  kMaxSteps = 4,
  kCancelled = 5,
};

const char* stop_reason_name(StopReason reason) noexcept;

struct AgentRecord {
  std::vector<AgentStep> steps;
  int64_t total_tokens = 0;
  StopReason stop = StopReason::kNone;

  [[nodiscard]] bool finished() const noexcept {
    return stop != StopReason::kNone && stop != StopReason::kCancelled;
  }
  /// The last output: its text if it has no calls. Empty before the first step.
  [[nodiscard]] std::string final_output() const;
  /// A JSON object.
  [[nodiscard]] std::string describe() const;
};

}  // namespace gen::agent
