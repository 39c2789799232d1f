// SPDX-License-Identifier: Apache-2.0
// Tools and agents. See generate.hpp.
#ifndef GENERATE_AGENT_HPP
#define GENERATE_AGENT_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "session.hpp"

namespace gen {

/// A call of a tool. Its views live while the function runs.
struct ToolCall {
  std::string_view id;
  std::string_view name;
  std::string_view arguments;  ///< JSON
  const gen_tool_reply *reply;
  /// Nobody waits for the output any more.
  bool stopped() const noexcept { return gen_tool_reply_stopped(reply) != 0; }
};

/// Functions that a model may call. A function returns its output; an exception is a failure, of
/// which the model is told. It runs on any thread, and must outlive calls that run past
/// "tool_timeout_ms".
class Tools : public detail::Handle<gen_tool_registry, gen_tool_registry_free> {
 public:
  using Function = std::function<std::string(const ToolCall &)>;

  Tools() : Handle(detail::made<gen_tool_registry>(gen_tool_registry_new)), functions_(std::make_shared<Functions>()) {}
  /// `schema` of the arguments; empty: there are none.
  Tools &add(const std::string &name, const std::string &description, const std::string &schema, Function run) {
    functions_->push_back(std::move(run));
    try {
      detail::call(gen_tool_registry_add, get(), name.c_str(), description.c_str(), schema.c_str(), &Tools::run,
                   static_cast<void *>(&functions_->back()));
    } catch (...) {
      functions_->pop_back();
      throw;
    }
    return *this;
  }
  Tools &remove(const std::string &name) {
    detail::call(gen_tool_registry_remove, get(), name.c_str());
    return *this;
  }
  size_t size() const noexcept { return gen_tool_registry_count(get()); }
  /// JSON in the form of OpenAI's API: all, sorted by name, or one.
  std::string describe() const { return detail::filled<std::string>(gen_tool_registry_describe, get()); }
  std::string describe(const std::string &name) const {
    return detail::filled<std::string>(gen_tool_registry_get, get(), name.c_str());
  }
  /// The result as JSON, of at most `most` bytes; see gen_tool_registry_call.
  std::string call(const std::string &name, std::string_view arguments, const std::string &id = "",
                   size_t most = 1 << 20) const {
    std::string text(most, '\0');
    size_t n = 0;
    detail::call(gen_tool_registry_call, get(), id.c_str(), name.c_str(), detail::data(arguments), arguments.size(),
                 text.data(), text.size(), &n);
    text.resize(n);
    return text;
  }

 private:
  friend class Agent;
  using Functions = std::list<Function>;
  static int run(void *user, const gen_tool_call *call, gen_tool_reply *reply) noexcept {
    int failed = 0;
    std::string output;
    try {
      output = (*static_cast<Function *>(user))({call->id, call->name, {call->arguments, call->arguments_len}, reply});
    } catch (const std::exception &exception) {
      failed = 1;
      static_cast<void>(gen_tool_reply_write(reply, exception.what(), GEN_NUL_TERMINATED, nullptr));
    } catch (...) {
      failed = 1;
    }
    if (failed != 0) return failed;
    return gen_tool_reply_write(reply, output.data(), output.size(), nullptr) == GEN_OK ? 0 : 1;
  }

  std::shared_ptr<Functions> functions_;
};

/// The calls in a text of a model's, as JSON; see gen_tool_calls_parse.
inline std::string parse_tool_calls(std::string_view text, const std::string &format = "json") {
  return detail::filled<std::string>(gen_tool_calls_parse, format.c_str(), detail::data(text), text.size());
}
inline std::string format_tool_result(const std::string &id, std::string_view output, bool is_error = false) {
  return detail::filled<std::string>(gen_tool_result_format, id.c_str(), detail::data(output), output.size(),
                                     int32_t{is_error});
}

/// How an agent works. set() takes the options that describe() lists.
class AgentOptions : public detail::Handle<gen_agent_options, gen_agent_options_free> {
 public:
  AgentOptions() : Handle(detail::made<gen_agent_options>(gen_agent_options_new)) {}
  AgentOptions &set(const std::string &key, const std::string &value) {
    detail::call(gen_agent_options_set, get(), key.c_str(), value.c_str());
    return *this;
  }
  AgentOptions &sampling(const Sampling &sampling) {
    detail::call(gen_agent_options_set_sampling, get(), sampling.get());
    return *this;
  }
  std::string describe() const { return detail::filled<std::string>(gen_agent_options_describe, get()); }
};

/// What happens in a run. `kind`: GEN_AGENT_…; views live until the next event.
struct AgentEvent {
  int32_t kind;
  int32_t step;
  int32_t call;
  std::string_view name;
  std::string_view id;
  std::string_view text;
  bool is_error;
};

namespace detail {

/// As Callback, of an agent's events.
template <class Take>
struct AgentCallback {
  Take &take;
  std::exception_ptr thrown;
  static int run(void *user, const gen_agent_event *event) noexcept {
    auto &self = *static_cast<AgentCallback *>(user);
    const AgentEvent view{event->kind, event->step, event->call, event->name, event->id,
                          {event->text, event->len}, event->is_error != 0};
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Take &, const AgentEvent &>>) {
        self.take(view);
        return 0;
      } else {
        return self.take(view) ? 0 : 1;
      }
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
};

/// A run of `function(args…, callback, user, result, error)`; an exception of the callback leaves it.
template <class Function, class Take, class... Args>
Result agent_run(Function function, Take &take, Args... args) {
  AgentCallback<Take> callback{take, nullptr};
  try {
    return generated(function, args..., &callback.run, static_cast<void *>(&callback));
  } catch (const Error &) {
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    throw;
  }
}

}  // namespace detail

/// A model that calls tools until it has an answer. The tools are shared.
class Agent : public detail::Handle<gen_agent, gen_agent_free> {
 public:
  Agent(const Generator &generator, const Tools &tools, const AgentOptions &options = AgentOptions())
      : Handle(detail::made<gen_agent>(gen_agent_new, generator.get(), tools.get(), options.get())),
        functions_(tools.functions_) {}
  /// For step() with outputs of a model of the caller's.
  explicit Agent(const Tools &tools, const AgentOptions &options = AgentOptions())
      : Handle(detail::made<gen_agent>(gen_agent_new, nullptr, tools.get(), options.get())),
        functions_(tools.functions_) {}
  Agent(Agent &&) noexcept = default;
  Agent &operator=(Agent &&other) noexcept {
    owned_ = std::move(other.owned_);  // before the functions
    functions_ = std::move(other.functions_);
    return *this;
  }
  ~Agent() { owned_.reset(); }

  /// The result of the last answer; describe() tells what was done, and why it ended.
  Result run(std::string_view task) {
    return detail::generated(gen_agent_run, get(), detail::data(task), task.size(), nullptr, nullptr);
  }
  /// take(const AgentEvent &) may return false to stop the run, or throw.
  template <class Take>
  Result run(std::string_view task, Take &&take) {
    return detail::agent_run(gen_agent_run, take, get(), detail::data(task), task.size());
  }
  /// Goes on with the conversation as it is.
  Result go_on() { return detail::generated(gen_agent_run, get(), nullptr, size_t{0}, nullptr, nullptr); }
  /// One step, with a generated answer or a given one: whether it was the last.
  bool step() { return one_step(nullptr, 0); }
  bool step(std::string_view output) { return one_step(detail::data(output), output.size()); }
  /// The last run as JSON; see gen_agent_describe.
  std::string describe() const { return detail::filled<std::string>(gen_agent_describe, get()); }
  /// The conversation; it must not outlive the agent.
  Chat chat() const noexcept { return Chat(gen_agent_chat(get())); }
  /// Any thread.
  void cancel() noexcept { gen_agent_cancel(get()); }
  /// Calls are cancelled while it is raised.
  void set_cancel(const Cancel &cancel) { detail::call(gen_agent_set_cancel, get(), cancel.get()); }
  void reset() { detail::call(gen_agent_reset, get()); }

 private:
  bool one_step(const char *output, size_t length) {
    int32_t finished = 0;
    detail::call(gen_agent_step, get(), output, length, nullptr, nullptr, &finished);
    return finished != 0;
  }

  std::shared_ptr<Tools::Functions> functions_;
};

/// Several agents on one task, which must outlive it.
class Supervisor : public detail::Handle<gen_supervisor, gen_supervisor_free> {
 public:
  Supervisor() : Handle(detail::made<gen_supervisor>(gen_supervisor_new)) {}
  /// The first one gets the task, and the others as tools.
  Supervisor &add(const std::string &name, const std::string &description, const Agent &agent) {
    detail::call(gen_supervisor_add_agent, get(), name.c_str(), description.c_str(), agent.get());
    return *this;
  }
  Supervisor &budget(int64_t tokens) {
    detail::call(gen_supervisor_set_budget, get(), tokens);
    return *this;
  }
  Result run(std::string_view task) {
    return detail::generated(gen_supervisor_run, get(), detail::data(task), task.size(), nullptr, nullptr);
  }
  template <class Take>
  Result run(std::string_view task, Take &&take) {
    return detail::agent_run(gen_supervisor_run, take, get(), detail::data(task), task.size());
  }
  std::string describe() const { return detail::filled<std::string>(gen_supervisor_describe, get()); }
  /// Any thread.
  void cancel() noexcept { gen_supervisor_cancel(get()); }
  void set_cancel(const Cancel &cancel) { detail::call(gen_supervisor_set_cancel, get(), cancel.get()); }
};

}  // namespace gen

#endif  // GENERATE_AGENT_HPP
