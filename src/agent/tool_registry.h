// SPDX-License-Identifier: Apache-2.0
// ToolRegistry: functions of the host that a model may call, by name. Calls never fail as such: an
// unknown tool, arguments that do not fit and a failing function are results with is_error.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "agent/tool_arguments.h"
#include "agent/tool_result.h"
#include "base/cancel.h"
#include "base/status.h"
#include "calls/tool.h"
#include "chat/conversation.h"

namespace gen::agent {

/// What a function answers, while it runs. Threads: one.
class ToolReply {
 public:
  /// Either flag may be null.
  ToolReply(const CancelFlag* cancel, const std::atomic<bool>* late) noexcept
      : cancel_(cancel), late_(late) {}

  /// Appends to the output. kInvalidArgument for what is not UTF-8.
  Status write(std::string_view text);
  /// Whether nobody waits for the output any more: the caller was cancelled, or time is over.
  [[nodiscard]] bool stopped() const noexcept {
    return (cancel_ != nullptr && cancel_->raised()) ||
           (late_ != nullptr && late_->load(std::memory_order_relaxed));
  }
  [[nodiscard]] std::string& output() noexcept { return output_; }

 private:
  std::string output_;
  const CancelFlag* cancel_;
  const std::atomic<bool>* late_;
};

/// False: the call failed, and the output says why. Exceptions are failures, too.
using ToolFunction = std::function<bool(const chat::ToolCall& call, ToolReply& reply)>;

/// Threads: immutable; `run` is called on any, and on several at once.
struct RegisteredTool {
  calls::Tool tool;
  ArgumentCheck arguments;
  ToolFunction run;
};

/// kInvalidArgument as make_tool() and ArgumentCheck::of().
Result<std::shared_ptr<const RegisteredTool>> register_tool(std::string_view name,
                                                            std::string_view description,
                                                            std::string_view schema,
                                                            ToolFunction run);

struct CallRules {
  bool check_arguments = true;
  const CancelFlag* cancel = nullptr;
  const std::atomic<bool>* late = nullptr;
};

/// Calls a tool; null: `tool "x" not found`. Fails for lack of memory of the library's only.
Result<ToolResult> call_tool(const RegisteredTool* tool, const chat::ToolCall& call,
                             const CallRules& rules);

/// Threads: any. Functions run outside the lock; a tool that is removed while it runs finishes.
class ToolRegistry {
 public:
  /// kInvalidArgument for a name that is taken; as register_tool().
  Status add(std::string_view name, std::string_view description, std::string_view schema,
             ToolFunction run);
  /// kInvalidArgument if there is none.
  Status remove(std::string_view name);
  [[nodiscard]] size_t size() const;
  /// Null if there is none.
  [[nodiscard]] std::shared_ptr<const RegisteredTool> find(std::string_view name) const;
  /// By name.
  [[nodiscard]] std::vector<std::shared_ptr<const RegisteredTool>> all() const;
  /// A JSON array in OpenAI's form, by name.
  [[nodiscard]] std::string describe() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const RegisteredTool>, std::less<>> tools_;
};

}  // namespace gen::agent
