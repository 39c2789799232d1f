// SPDX-License-Identifier: Apache-2.0
// ToolResult: what a call of a tool gave, and its form for programs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gen::agent {

struct ToolResult {
  std::string call_id;
  std::string output;  // of a failed call: why it failed
  bool is_error = false;
};

/// {"tool_call_id":…,"output":…,"is_error":…}
std::string format_result(const ToolResult& result);

/// The output, or its beginning and a note of how much is missing if it has more than `most` bytes;
/// 0: no limit. The cut is between characters.
std::string shortened_output(std::string_view output, size_t most);

}  // namespace gen::agent
