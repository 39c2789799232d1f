// SPDX-License-Identifier: Apache-2.0
// See tool_result.h.
#include "agent/tool_result.h"

#include "base/json_text.h"
#include "base/utf8.h"

namespace gen::agent {

std::string format_result(const ToolResult& result) {
  return "{\"tool_call_id\":" + json_quote(result.call_id) +
         ",\"output\":" + json_quote(result.output) +
         ",\"is_error\":" + (result.is_error ? "true" : "false") + "}";
}

std::string shortened_output(std::string_view output, size_t most) {
  if (most == 0 || output.size() <= most) return std::string(output);
  const std::string_view kept = output.substr(0, utf8_complete_prefix(output.substr(0, most)));
  return std::string(kept) + "\n[" + std::to_string(output.size() - kept.size()) + " of " +
         std::to_string(output.size()) + " bytes left out]";
}

}  // namespace gen::agent
