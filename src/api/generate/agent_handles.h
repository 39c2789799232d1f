// SPDX-License-Identifier: Apache-2.0
// The handles of agent.h.
#pragma once

#include <generate/agent.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/agent.h"
#include "agent/supervisor.h"
#include "agent/tool_registry.h"
#include "api/boundary/entry.h"
#include "api/generate/handles.h"
#include "base/home_process.h"

struct gen_tool_reply {
  gen::agent::ToolReply* reply;
};

struct gen_tool_registry {
  std::shared_ptr<gen::agent::ToolRegistry> impl = std::make_shared<gen::agent::ToolRegistry>();
  gen::HomeProcess home;
};

struct gen_agent_options {
  gen::agent::AgentOptions agent;
};

struct gen_agent : gen::Postponed {
  gen::api::Shared<gen::agent::Agent> shared;
  gen_chat chat;  // lends the agent's conversation
  gen::HomeProcess home;
};

struct gen_supervisor : gen::Postponed {
  std::shared_ptr<gen::agent::Supervisor> impl = std::make_shared<gen::agent::Supervisor>();
  mutable std::mutex mutex;
  gen::SharedCallbacks callbacks;  // of all agents; under the mutex
  gen::HomeProcess home;

  [[nodiscard]] gen::api::Shared<gen::agent::Supervisor> shared() const {
    const std::lock_guard lock(mutex);
    return gen::api::Shared<gen::agent::Supervisor>(impl, callbacks);
  }
};

namespace gen::api {

/// The callback of a call, with its data.
struct AgentBridge {
  gen_agent_callback callback;
  void* user;
};

/// As agent::AgentCallback; `user` is an AgentBridge.
int32_t forward_agent_event(void* user, const agent::AgentEvent& event);

/// Runs `run`, which fills an outcome; *result, if the caller wants one, is set where there is one,
/// whatever the status.
template <typename F>
Status with_result(gen_result** result, F&& run) {
  // Allocated before anything runs, so that no result is lost for lack of memory.
  std::unique_ptr<gen_result> handle;
  if (result != nullptr) handle = std::make_unique<gen_result>();
  std::optional<generate::GenResult> outcome;
  Status status = run(&outcome);
  if (outcome.has_value() && result != nullptr) {
    fill_result(std::move(*outcome), handle.get());
    *result = handle.release();
  }
  return status;
}

/// NULL is empty. kInvalidArgument for what is not UTF-8.
Result<std::string_view> optional_text(const char* text, const char* what);

}  // namespace gen::api
