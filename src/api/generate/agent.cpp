// SPDX-License-Identifier: Apache-2.0
// Agents of agent.h in the C API; agent_tools.cpp has the registries, supervisor.cpp the
// supervisors.
#include <generate/agent.h>

#include "api/boundary/boundary.h"
#include "api/generate/agent_handles.h"

namespace gen::api {

int32_t forward_agent_event(void* user, const agent::AgentEvent& event) {
  const AgentBridge& bridge = *static_cast<AgentBridge*>(user);
  gen_agent_event said{};
  said.struct_size = sizeof said;
  said.kind = static_cast<int32_t>(event.kind);
  said.step = event.step;
  said.call = event.call;
  said.name = event.name.data();
  said.id = event.id.data();
  said.text = event.text.data();
  said.len = event.text.size();
  said.is_error = event.is_error ? 1 : 0;
  return bridge.callback(bridge.user, &said);
}

}  // namespace gen::api

namespace {

using gen::Status;
using gen::agent::Agent;
using gen::api::AgentBridge;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_agent_new(gen_generator* generator, gen_tool_registry* registry,
                         const gen_agent_options* options, gen_agent** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(registry, "registry"));
    GEN_TRY(not_null(out, "out"));
    auto handle = std::make_unique<gen_agent>();
    std::shared_ptr<const gen::generate::Generator> writer;
    gen::SharedCallbacks callbacks;
    if (generator != nullptr) {
      GEN_TRY(not_null(generator, "generator"));
      GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
      writer = used.shared();
      callbacks = generator->shared.callbacks();
    }
    GEN_ASSIGN(auto made,
               Agent::create(writer, registry->impl,
                             options != nullptr ? options->agent : gen::agent::AgentOptions()));
    handle->chat.impl = made->chat();
    handle->chat.lent = true;
    handle->shared = gen::api::Shared<Agent>(std::move(made), std::move(callbacks));
    *out = handle.release();
    return {};
  });
}

gen_status gen_agent_run(gen_agent* agent, const char* task, size_t len,
                         gen_agent_callback callback, void* user, gen_result** result,
                         gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(agent, "agent"));
    std::optional<std::string_view> text;
    if (task != nullptr) {
      GEN_ASSIGN(text, gen::api::text_in(task, len, "task"));
    }
    GEN_ASSIGN(const auto used, agent->shared.enter("the agent"));
    AgentBridge bridge{callback, user};
    return gen::api::with_result(result, [&](std::optional<gen::generate::GenResult>* outcome) {
      return used->run(text, {}, callback != nullptr ? gen::api::forward_agent_event : nullptr,
                       &bridge, outcome);
    });
  });
}

gen_status gen_agent_step(gen_agent* agent, const char* output, size_t len,
                          gen_agent_callback callback, void* user, int32_t* finished,
                          gen_error* error) {
  if (finished != nullptr) *finished = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(agent, "agent"));
    GEN_TRY(not_null(finished, "finished"));
    std::optional<std::string_view> text;
    if (output != nullptr) {
      GEN_ASSIGN(text, gen::api::text_in(output, len, "output"));
    }
    GEN_ASSIGN(const auto used, agent->shared.enter("the agent"));
    AgentBridge bridge{callback, user};
    bool last = false;
    GEN_TRY(used->step(text, callback != nullptr ? gen::api::forward_agent_event : nullptr, &bridge,
                       &last));
    *finished = last ? 1 : 0;
    return {};
  });
}

gen_status gen_agent_describe(const gen_agent* agent, char* buf, size_t capacity, size_t* n,
                              gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(agent, "agent"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto used, agent->shared.enter("the agent"));
    GEN_ASSIGN(const std::string text, used->describe());
    return gen::api::text_out(text, buf, capacity, n);
  });
}

gen_chat* gen_agent_chat(gen_agent* agent) { return agent != nullptr ? &agent->chat : nullptr; }

void gen_agent_cancel(gen_agent* agent) {
  if (agent != nullptr) agent->shared.peek().cancel();
}

gen_status gen_agent_set_cancel(gen_agent* agent, gen_cancel* cancel, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(agent, "agent"));
    GEN_ASSIGN(const auto used, agent->shared.enter("the agent"));
    return used->set_cancel(cancel != nullptr ? cancel->flag : nullptr);
  });
}

gen_status gen_agent_reset(gen_agent* agent, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(agent, "agent"));
    GEN_ASSIGN(const auto used, agent->shared.enter("the agent"));
    return used->reset();
  });
}

void gen_agent_free(gen_agent* agent) {
  if (agent != nullptr) gen::api::end_handle(agent, agent->shared.callbacks());
}
