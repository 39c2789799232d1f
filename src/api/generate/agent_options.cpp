// SPDX-License-Identifier: Apache-2.0
// gen_agent_options of agent.h in the C API.
#include <generate/agent.h>

#include "agent/read_calls.h"
#include "api/boundary/boundary.h"
#include "api/boundary/option_table.h"
#include "api/generate/agent_handles.h"
#include "base/utf8.h"
#include "calls/format_table.h"
#include "calls/tool.h"

namespace {

using gen::Code;
using gen::Status;
using gen::agent::AgentOptions;
using gen::api::guard;
using gen::api::kAnyLeast;
using gen::api::kAnyMost;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::SwitchOption;
using gen::api::TextOption;
using gen::api::WholeOption;

constexpr int32_t kMaxToolThreads = 1024;

Status set_system(AgentOptions& options, const char* text) {
  if (!gen::utf8_valid(text)) return {Code::kInvalidArgument, "the system message is not UTF-8"};
  options.system = text;
  return {};
}

Status set_format(AgentOptions& options, const char* text) {
  if (std::string_view(text) != "auto") GEN_TRY(gen::agent::call_format(text));
  options.call_format = text[0] != '\0' ? text : "json";
  return {};
}

Status set_choice(AgentOptions& options, const char* text) {
  if (text[0] != '\0') GEN_TRY(gen::calls::make_tool(text, "", ""));
  options.tool_choice = text;
  return {};
}

const OptionRow<AgentOptions> kRows[] = {
    {"max_steps",
     WholeOption<AgentOptions>{[](AgentOptions& o) -> int32_t& { return o.max_steps; }, kAnyLeast,
                               kAnyMost, gen::agent::kDefaultMaxSteps},
     "most answers of a run; 0 or less: the default"},
    {"max_tokens",
     WholeOption<AgentOptions>{[](AgentOptions& o) -> int32_t& { return o.max_tokens; }, 0,
                               kAnyMost},
     "tokens that all answers of a run may have together; the calls of an answer that reaches them "
     "are not "
     "run; 0: no limit"},
    {"stop_on_tool_error",
     SwitchOption<AgentOptions>{[](AgentOptions& o) -> bool& { return o.stop_on_tool_error; }},
     "whether a run ends after a step with a failed call; otherwise the model is told"},
    {"tool_timeout_ms",
     WholeOption<AgentOptions>{[](AgentOptions& o) -> int32_t& { return o.tool_timeout_ms; }, 0,
                               kAnyMost},
     "milliseconds after which a call of a tool has failed; its callback then runs on another "
     "thread than the agent's, and goes on there; 0: no limit"},
    {"tool_threads",
     WholeOption<AgentOptions>{[](AgentOptions& o) -> int32_t& { return o.tool_threads; }, 0,
                               kMaxToolThreads},
     "threads for the calls of one answer; 0: they run in order, on the thread of the agent"},
    {"check_arguments",
     SwitchOption<AgentOptions>{[](AgentOptions& o) -> bool& { return o.check_arguments; }},
     "whether the arguments of calls are compared with the schemas of the tools before these run"},
    {"max_result_bytes",
     WholeOption<AgentOptions>{[](AgentOptions& o) -> int32_t& { return o.max_result_bytes; }, 0,
                               kAnyMost},
     "bytes of a tool's output that the model sees; a longer one is cut, with a note; 0: no limit"},
    {"system",
     TextOption<AgentOptions>{[] { return std::string("any text"); }, set_system,
                              [](const AgentOptions& o) { return o.system; }},
     "system message at the beginning of the conversation; empty: none"},
    {"call_format",
     TextOption<AgentOptions>{[] { return "auto, " + gen::calls::format_names(); }, set_format,
                              [](const AgentOptions& o) { return o.call_format; }},
     "how calls are written in answers; auto: as the model's template does, without a model json"},
    {"tool_choice",
     TextOption<AgentOptions>{
         [] { return std::string("auto, none, required, name of a tool, or empty"); }, set_choice,
         [](const AgentOptions& o) { return o.tool_choice; }},
     "whether the first answer of a run must have a call; empty: as the conversation's options say "
     "for all answers"},
};

}  // namespace

gen_status gen_agent_options_new(gen_agent_options** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_agent_options;
    return {};
  });
}

gen_status gen_agent_options_set(gen_agent_options* options, const char* key, const char* value,
                                 gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<AgentOptions>(kRows, options->agent, key, value);
  });
}

gen_status gen_agent_options_set_sampling(gen_agent_options* options, const gen_sampling* sampling,
                                          gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    gen::generate::CallParams call =
        sampling != nullptr ? sampling->params : AgentOptions::default_call();
    options->agent.call = std::move(call);
    return {};
  });
}

gen_status gen_agent_options_describe(const gen_agent_options* options, char* buf, size_t capacity,
                                      size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return gen::api::text_out(gen::api::describe_options<AgentOptions>(kRows, options->agent), buf,
                              capacity, n);
  });
}

void gen_agent_options_free(gen_agent_options* options) { delete options; }
