// SPDX-License-Identifier: Apache-2.0
// The tools of `generate chat --tools`: from a file, or built in.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "handles.h"

namespace cli {

/// An element of the file's array: a description in the form of OpenAI's API, and beside it what
/// runs the tool: "command", an array of a program and its arguments, which reads the call's
/// arguments as JSON and writes the output; or "values", an object from which the first argument
/// chooses.
class Tools {
 public:
  /// `what` is a file, or the name of a tool that is built in: calculator. A Failure names what is
  /// wrong.
  explicit Tools(const std::string& what);

  /// Whether every tool has something that runs it; otherwise templates are only told of them.
  [[nodiscard]] bool run() const noexcept { return run_; }
  /// The descriptions, as JSON, without what runs them.
  [[nodiscard]] const std::vector<std::string>& descriptions() const noexcept {
    return descriptions_;
  }
  /// Adds the tools; they must outlive the registry. Only if run().
  void add_to(gen_tool_registry* registry);

 private:
  struct Tool {
    std::string name, description, parameters;
    std::vector<std::string> command;
    nlohmann::ordered_json values;
    bool calculates = false;
  };
  static int call(void* user, const gen_tool_call* call, gen_tool_reply* reply);
  static std::string output_of(const Tool& tool, const std::string& arguments);

  bool run_ = true;
  std::vector<std::string> descriptions_;
  std::vector<std::unique_ptr<Tool>> tools_;
};

}  // namespace cli
