// SPDX-License-Identifier: Apache-2.0
// See tool_registry.h.
#include "agent/tool_registry.h"

#include <exception>
#include <utility>

#include "base/utf8.h"

namespace gen::agent {
namespace {

Status not_found(std::string_view name) {
  return error(Code::kInvalidArgument, "tool \"%.80s\" not found", std::string(name).c_str());
}

}  // namespace

Status ToolReply::write(std::string_view text) {
  if (!utf8_valid(text)) return {Code::kInvalidArgument, "the output of a tool is not UTF-8"};
  output_ += text;
  return {};
}

Result<std::shared_ptr<const RegisteredTool>> register_tool(std::string_view name,
                                                            std::string_view description,
                                                            std::string_view schema,
                                                            ToolFunction run) {
  GEN_ASSIGN(auto tool, calls::make_tool(name, description, schema));
  GEN_ASSIGN(auto arguments, ArgumentCheck::of(tool));
  return std::shared_ptr<const RegisteredTool>(std::make_shared<RegisteredTool>(
      RegisteredTool{std::move(tool), std::move(arguments), std::move(run)}));
}

Result<ToolResult> call_tool(const RegisteredTool* tool, const chat::ToolCall& call,
                             const CallRules& rules) {
  ToolResult result{call.id, {}, true};
  if (tool == nullptr) {
    result.output = "tool \"" + call.name + "\" not found";
    return result;
  }
  if (rules.check_arguments) {
    GEN_ASSIGN(result.output, tool->arguments.fault(tool->tool, call.arguments));
    if (!result.output.empty()) return result;
  }
  ToolReply reply(rules.cancel, rules.late);
  std::string thrown;
  try {
    result.is_error = !tool->run(call, reply);
  } catch (const std::exception& exception) {
    thrown = exception.what();
    if (thrown.empty()) thrown = "an exception";
  } catch (...) {
    thrown = "an exception";
  }
  result.output = std::move(reply.output());
  if (!thrown.empty()) {
    const std::string_view valid(thrown.data(), utf8_valid_prefix(thrown));
    result.output.assign("tool \"").append(call.name).append("\" threw: ").append(valid);
  } else if (result.is_error && result.output.empty()) {
    result.output = "tool \"" + call.name + "\" failed";
  }
  return result;
}

Status ToolRegistry::add(std::string_view name, std::string_view description,
                         std::string_view schema, ToolFunction run) {
  GEN_ASSIGN(auto made, register_tool(name, description, schema, std::move(run)));
  const std::lock_guard lock(mutex_);
  const bool added = tools_.try_emplace(std::string(name), std::move(made)).second;
  if (added) return {};
  return error(Code::kInvalidArgument, "tool \"%.80s\" is there already",
               std::string(name).c_str());
}

Status ToolRegistry::remove(std::string_view name) {
  std::shared_ptr<const RegisteredTool> gone;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  const auto at = tools_.find(name);
  if (at == tools_.end()) return not_found(name);
  gone = std::move(at->second);
  tools_.erase(at);
  return {};
}

size_t ToolRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return tools_.size();
}

std::shared_ptr<const RegisteredTool> ToolRegistry::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = tools_.find(name);
  return at == tools_.end() ? nullptr : at->second;
}

std::vector<std::shared_ptr<const RegisteredTool>> ToolRegistry::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const RegisteredTool>> found;
  found.reserve(tools_.size());
  for (const auto& [name, tool] : tools_) found.push_back(tool);
  return found;
}

std::string ToolRegistry::describe() const {
  std::string text = "[";
  for (const auto& one : all()) {
    if (text.size() > 1) text += ',';
    text += calls::describe_tool(one->tool);
  }
  return text + "]";
}

}  // namespace gen::agent
