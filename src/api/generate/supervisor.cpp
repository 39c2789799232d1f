// SPDX-License-Identifier: Apache-2.0
// Supervisors of agent.h in the C API.
#include <generate/agent.h>

#include "api/boundary/boundary.h"
#include "api/generate/agent_handles.h"

namespace {

using gen::Status;
using gen::api::AgentBridge;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_supervisor_new(gen_supervisor** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_supervisor;
    return {};
  });
}

gen_status gen_supervisor_add_agent(gen_supervisor* supervisor, const char* name,
                                    const char* description, gen_agent* agent, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(supervisor, "supervisor"));
    GEN_TRY(not_null(name, "name"));
    GEN_TRY(not_null(agent, "agent"));
    const auto shared = supervisor->shared();
    GEN_ASSIGN(const auto used, shared.enter("the supervisor"));
    GEN_ASSIGN(const auto member, agent->shared.enter("the agent"));
    gen::CallbackList all;
    for (const gen::SharedCallbacks& list : {shared.callbacks(), agent->shared.callbacks()}) {
      if (list != nullptr) all.insert(all.end(), list->begin(), list->end());
    }
    gen::SharedCallbacks joined;
    if (!all.empty()) joined = std::make_shared<const gen::CallbackList>(std::move(all));
    GEN_TRY(used->add(name, description != nullptr ? description : "", member.shared()));
    const std::lock_guard lock(supervisor->mutex);
    supervisor->callbacks = std::move(joined);
    return {};
  });
}

gen_status gen_supervisor_set_budget(gen_supervisor* supervisor, int64_t tokens, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(supervisor, "supervisor"));
    const auto shared = supervisor->shared();
    GEN_ASSIGN(const auto used, shared.enter("the supervisor"));
    return used->set_budget(tokens);
  });
}

gen_status gen_supervisor_run(gen_supervisor* supervisor, const char* task, size_t len,
                              gen_agent_callback callback, void* user, gen_result** result,
                              gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(supervisor, "supervisor"));
    GEN_TRY(not_null(task, "task"));
    GEN_ASSIGN(const auto text, gen::api::text_in(task, len, "task"));
    const auto shared = supervisor->shared();
    GEN_ASSIGN(const auto used, shared.enter("the supervisor"));
    AgentBridge bridge{callback, user};
    return gen::api::with_result(result, [&](std::optional<gen::generate::GenResult>* outcome) {
      return used->run(text, callback != nullptr ? gen::api::forward_agent_event : nullptr, &bridge,
                       outcome);
    });
  });
}

gen_status gen_supervisor_describe(const gen_supervisor* supervisor, char* buf, size_t capacity,
                                   size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(supervisor, "supervisor"));
    GEN_TRY(not_null(n, "n"));
    const auto shared = supervisor->shared();
    GEN_ASSIGN(const auto used, shared.enter("the supervisor"));
    GEN_ASSIGN(const std::string text, used->describe());
    return gen::api::text_out(text, buf, capacity, n);
  });
}

gen_status gen_supervisor_set_cancel(gen_supervisor* supervisor, gen_cancel* cancel,
                                     gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(supervisor, "supervisor"));
    const auto shared = supervisor->shared();
    GEN_ASSIGN(const auto used, shared.enter("the supervisor"));
    return used->set_cancel(cancel != nullptr ? cancel->flag : nullptr);
  });
}

void gen_supervisor_cancel(gen_supervisor* supervisor) {
  if (supervisor != nullptr) supervisor->impl->cancel();
}

void gen_supervisor_free(gen_supervisor* supervisor) {
  if (!gen::api::usable(supervisor)) return;
  gen::api::end_handle(supervisor, supervisor->shared().callbacks());
}
