// SPDX-License-Identifier: Apache-2.0
// Runs the calls of a step: in order on the calling thread, or on threads of their own, with a time
// limit for each. Results stay in the order of the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agent/tool_registry.h"
#include "base/cancel.h"
#include "base/status.h"

namespace gen::agent {

struct ReadyCall {
  chat::ToolCall call;
  std::shared_ptr<const RegisteredTool> tool;  // null: there is none
};

struct RunnerOptions {
  int32_t threads = 0;     // 0: the calling thread
  int32_t timeout_ms = 0;  // of each call; 0: none. With one, functions run on other threads
  bool check_arguments = true;
};

/// Called on the thread of run_calls().
class RunnerEvents {
 public:
  virtual ~RunnerEvents() = default;
  virtual void began(size_t call) = 0;
  virtual void ended(size_t call, const ToolResult& result) = 0;
  /// No further call shall begin.
  [[nodiscard]] virtual bool stopped() const noexcept = 0;
};

/// Every call has a result. Calls that did not begin before `cancel` or the events stopped it are
/// errors that say so. A function that runs past its time goes on in its thread; its output is
/// dropped. kOutOfMemory, also if no thread can be made.
Status run_calls(std::span<const ReadyCall> calls, const RunnerOptions& options,
                 const std::shared_ptr<const CancelFlag>& cancel, RunnerEvents* events,
                 std::vector<ToolResult>* results);

/// The result of a call that was not run.
ToolResult not_run(const chat::ToolCall& call, const char* why);

}  // namespace gen::agent
