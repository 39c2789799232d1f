// SPDX-License-Identifier: Apache-2.0
// See read_calls.h.
#include "agent/read_calls.h"

#include "calls/answer_json.h"
#include "calls/format_table.h"
#include "generate/answer/answer_form.h"

namespace gen::agent {

Result<std::shared_ptr<const calls::CallFormat>> call_format(std::string_view name) {
  if (name.empty()) return calls::generic_format();
  auto format = calls::format_named(name);
  if (format != nullptr) return format;
  return error(Code::kInvalidArgument, "no format of calls is named %.40s, known are %s",
               std::string(name).c_str(), calls::format_names().c_str());
}

chat::ChatMessage answer_message(const calls::Answer& answer, const calls::CallFormat& format,
                                 const chat::Conversation& before) {
  chat::ChatMessage message{"assistant", answer.text, answer.reasoning};
  for (const calls::Call& call : answer.calls) {
    message.tool_calls.push_back({call.id, call.name, call.arguments});
  }
  generate::give_ids(format, before.messages, &message.tool_calls);
  return message;
}

std::string parsed_calls(const std::shared_ptr<const calls::CallFormat>& format,
                         std::string_view text) {
  calls::Answer answer = calls::parse_answer(format, nullptr, text);
  const chat::ChatMessage message = answer_message(answer, calls::CallFormat(), {});
  for (size_t i = 0; i < answer.calls.size(); ++i) answer.calls[i].id = message.tool_calls[i].id;
  return calls::answer_json(answer);
}

}  // namespace gen::agent
