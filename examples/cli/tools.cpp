// SPDX-License-Identifier: Apache-2.0
// See tools.h.
#include "tools.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "calculator.h"
#include "run_command.h"
#include "text_file.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCalculator = R"([{"type": "function", "function": {"name": "calculator",
  "description": "Computes an expression of numbers, + - * / and parentheses.",
  "parameters": {"type": "object", "properties": {"expression": {"type": "string"}},
  "required": ["expression"]}}}])";

std::string text_member(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace

Tools::Tools(const std::string& what) {
  const bool built_in = what == "calculator";
  const Json all = Json::parse(built_in ? kCalculator : text_of_file(what), nullptr,
                               /*exceptions=*/false);
  if (!all.is_array()) throw Failure("--tools: " + what + " is not a JSON array", 2);
  size_t runnable = 0;
  for (Json one : all) {
    auto tool = std::make_unique<Tool>();
    if (one.is_object()) {
      if (const auto at = one.find("command"); at != one.end()) {
        const auto is_text = [](const Json& part) { return part.is_string(); };
        if (!at->is_array() || at->empty() || !std::all_of(at->begin(), at->end(), is_text)) {
          throw Failure("--tools: a command is no array of texts", 2);
        }
        tool->command = at->get<std::vector<std::string>>();
        one.erase("command");
      }
      if (const auto at = one.find("values"); at != one.end()) {
        if (!at->is_object()) throw Failure("--tools: values are no JSON object", 2);
        tool->values = *at;
        one.erase("values");
      }
      const Json& function = one.contains("function") ? one.at("function") : one;
      tool->name = text_member(function, "name");
      tool->description = text_member(function, "description");
      if (function.is_object() && function.contains("parameters")) {
        tool->parameters = function.at("parameters").dump();
      }
    }
    tool->calculates = built_in;
    runnable += built_in || !tool->command.empty() || tool->values.is_object() ? 1 : 0;
    descriptions_.push_back(one.dump());
    tools_.push_back(std::move(tool));
  }
  run_ = runnable > 0;
  if (runnable > 0 && runnable < tools_.size()) {
    throw Failure("--tools: some tools have a command or values, and some have not", 2);
  }
}

void Tools::add_to(gen_tool_registry* registry) {
  for (const auto& tool : tools_) {
    gen_error error;
    check_option("--tools",
                 gen_tool_registry_add(registry, tool->name.c_str(), tool->description.c_str(),
                                       tool->parameters.c_str(), call, tool.get(), &error),
                 error);
  }
}

std::string Tools::output_of(const Tool& tool, const std::string& arguments) {
  const Json given = Json::parse(arguments);
  if (tool.calculates) return calculate(given.at("expression").get<std::string>());
  if (!tool.command.empty()) {
    CommandOutput output = run_command(tool.command, arguments);
    while (!output.text.empty() && output.text.back() == '\n') output.text.pop_back();
    if (output.status == 0) return output.text;
    throw std::runtime_error("exit status " + std::to_string(output.status) +
                             (output.text.empty() ? "" : ": " + output.text));
  }
  if (given.empty()) throw std::runtime_error("an argument is missing");
  const Json& first = given.front();
  const std::string key = first.is_string() ? first.get<std::string>() : first.dump();
  const auto at = tool.values.find(key);
  if (at == tool.values.end()) throw std::runtime_error("nothing is known of " + key);
  return at->is_string() ? at->get<std::string>() : at->dump();
}

int Tools::call(void* user, const gen_tool_call* call, gen_tool_reply* reply) {
  std::string output;
  int failed = 0;
  try {
    output = output_of(*static_cast<const Tool*>(user), call->arguments);
  } catch (const std::exception& failure) {
    output = failure.what();
    failed = 1;
  }
  gen_error error;
  const gen_status status = gen_tool_reply_write(reply, output.data(), output.size(), &error);
  return status == GEN_OK ? failed : 1;
}

}  // namespace cli
