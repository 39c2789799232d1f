// SPDX-License-Identifier: Apache-2.0
// Registries of tools, and texts with calls, of agent.h in the C API.
#include <generate/agent.h>

#include "agent/read_calls.h"
#include "agent/tool_registry.h"
#include "agent/tool_result.h"
#include "api/boundary/boundary.h"
#include "api/generate/agent_handles.h"
#include "base/utf8.h"

namespace gen::api {

Result<std::string_view> optional_text(const char* text, const char* what) {
  const std::string_view view = text != nullptr ? text : "";
  if (utf8_valid(view)) return view;
  return error(Code::kInvalidArgument, "%s is not UTF-8", what);
}

}  // namespace gen::api

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::agent::ToolRegistry;
using gen::agent::ToolReply;
using gen::api::guard;
using gen::api::not_null;
using gen::api::optional_text;

Result<std::string_view> utf8_in(const char* text, size_t len, const char* what) {
  GEN_ASSIGN(const auto view, gen::api::text_in(text, len, what));
  if (gen::utf8_valid(view)) return view;
  return gen::error(Code::kInvalidArgument, "%s is not UTF-8", what);
}

gen::agent::ToolFunction function_of(gen_tool_callback callback, void* user) {
  return [callback, user](const gen::chat::ToolCall& call, ToolReply& reply) {
    const gen_tool_call said{sizeof(gen_tool_call), call.id.c_str(), call.name.c_str(),
                             call.arguments.c_str(), call.arguments.size()};
    gen_tool_reply handle{&reply};
    return callback(user, &said, &handle) == 0;
  };
}

}  // namespace

gen_status gen_tool_reply_write(gen_tool_reply* reply, const char* text, size_t len,
                                gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(reply, "reply"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    return reply->reply->write(view);
  });
}

int32_t gen_tool_reply_stopped(const gen_tool_reply* reply) {
  return reply != nullptr && reply->reply->stopped() ? 1 : 0;
}

gen_status gen_tool_registry_new(gen_tool_registry** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_tool_registry;
    return {};
  });
}

gen_status gen_tool_registry_add(gen_tool_registry* registry, const char* name,
                                 const char* description, const char* json_schema,
                                 gen_tool_callback callback, void* user, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(registry, "registry"));
    GEN_TRY(not_null(name, "name"));
    if (callback == nullptr) {
      return gen::error(Code::kInvalidArgument, "the callback of tool \"%.80s\" is NULL", name);
    }
    return registry->impl->add(name, description != nullptr ? description : "",
                               json_schema != nullptr ? json_schema : "",
                               function_of(callback, user));
  });
}

gen_status gen_tool_registry_remove(gen_tool_registry* registry, const char* name,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(registry, "registry"));
    GEN_TRY(not_null(name, "name"));
    return registry->impl->remove(name);
  });
}

size_t gen_tool_registry_count(const gen_tool_registry* registry) {
  return gen::api::usable(registry) ? registry->impl->size() : 0;
}

gen_status gen_tool_registry_describe(const gen_tool_registry* registry, char* buf, size_t capacity,
                                      size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(registry, "registry"));
    GEN_TRY(not_null(n, "n"));
    return gen::api::text_out(registry->impl->describe(), buf, capacity, n);
  });
}

gen_status gen_tool_registry_get(const gen_tool_registry* registry, const char* name, char* buf,
                                 size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(registry, "registry"));
    GEN_TRY(not_null(name, "name"));
    GEN_TRY(not_null(n, "n"));
    const auto tool = registry->impl->find(name);
    if (tool == nullptr) {
      return gen::error(Code::kInvalidArgument, "tool \"%.80s\" not found", name);
    }
    return gen::api::text_out(gen::calls::describe_tool(tool->tool), buf, capacity, n);
  });
}

gen_status gen_tool_registry_call(gen_tool_registry* registry, const char* id, const char* name,
                                  const char* arguments, size_t len, char* buf, size_t capacity,
                                  size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(registry, "registry"));
    GEN_TRY(not_null(name, "name"));
    GEN_TRY(not_null(buf, "buf"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto call_id, optional_text(id, "id"));
    GEN_ASSIGN(const auto called, optional_text(name, "name"));
    GEN_ASSIGN(const auto json, utf8_in(arguments, len, "arguments"));
    const auto tool = registry->impl->find(called);
    GEN_ASSIGN(const auto result, gen::agent::call_tool(tool.get(),
                                                        {std::string(call_id), std::string(called),
                                                         json.empty() ? "{}" : std::string(json)},
                                                        {}));
    return gen::api::text_out(gen::agent::format_result(result), buf, capacity, n);
  });
}

void gen_tool_registry_free(gen_tool_registry* registry) { gen::api::end_handle(registry); }

gen_status gen_tool_calls_parse(const char* format, const char* text, size_t len, char* buf,
                                size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(text, "text"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto name, optional_text(format, "format"));
    GEN_ASSIGN(const auto view, utf8_in(text, len, "text"));
    GEN_ASSIGN(const auto known, gen::agent::call_format(name));
    return gen::api::text_out(gen::agent::parsed_calls(known, view), buf, capacity, n);
  });
}

gen_status gen_tool_result_format(const char* id, const char* output, size_t len, int32_t is_error,
                                  char* buf, size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(output, "output"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto call_id, optional_text(id, "id"));
    GEN_ASSIGN(const auto view, utf8_in(output, len, "output"));
    return gen::api::text_out(
        gen::agent::format_result({std::string(call_id), std::string(view), is_error != 0}), buf,
        capacity, n);
  });
}
