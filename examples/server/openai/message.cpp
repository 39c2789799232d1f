// SPDX-License-Identifier: Apache-2.0
// See message.h.
#include "message.h"

#include <utility>

#include "fields.h"

namespace server {
namespace {

using nlohmann::json;

/// The text of a message: a string, or an array of parts that are all text.
std::string content_text(Fields& fields, bool may_be_absent) {
  const json* content = fields.find("content");
  const std::string path = fields.path("content");
  if (content == nullptr) {
    if (may_be_absent) return {};
    throw bad_request(path, "'" + path + "' is missing");
  }
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    throw bad_request(
        path, "'" + path + "' must be a string or an array of parts, not " + kind_of(*content));
  }
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    Fields part((*content)[i], fields.path(item("content", i)));
    const std::string type = part.text("type").value_or("");
    if (type != "text") {
      throw bad_request(part.path("type"), "'" + part.path("type") + "': only text is supported",
                        "unsupported_content");
    }
    const auto piece = part.text("text");
    if (!piece) throw bad_request(part.path("text"), "'" + part.path("text") + "' is missing");
    text += *piece;
  }
  return text;
}

/// Some clients send no text for a call without arguments.
std::string arguments_text(Fields& called) {
  const std::string text = called.text("arguments").value_or("");
  if (text.empty()) return "{}";
  // Not parsed into values: the text may be long.
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (!json::accept(text) || text[first] != '{') {
    const std::string path = called.path("arguments");
    throw bad_request(path, "'" + path + "' must be the text of a JSON object");
  }
  return text;
}

void read_tool_calls(Fields& fields, Message& message) {
  const json* calls = fields.find("tool_calls");
  if (calls == nullptr) return;
  const std::string path = fields.path("tool_calls");
  if (!calls->is_array()) {
    throw bad_request(path, "'" + path + "' must be an array, not " + kind_of(*calls));
  }
  for (size_t i = 0; i < calls->size(); ++i) {
    Fields call((*calls)[i], fields.path(item("tool_calls", i)));
    const auto type = call.text("type");
    const json* function = call.find("function");
    if ((type && *type != "function") || function == nullptr) {
      throw bad_request(call.path("function"),
                        "'" + call.path("function") + "': only functions can be called");
    }
    Fields called(*function, call.path("function"));
    const auto name = called.word("name");
    if (!name) throw bad_request(called.path("name"), "'" + called.path("name") + "' is missing");
    message.tool_calls.push_back({call.word("id").value_or(""), *name, arguments_text(called)});
    called.refuse_rest();
    call.ignore("index");
    call.refuse_rest();
  }
}

}  // namespace

Message read_message(const json& value, const std::string& where) {
  Fields fields(value, where);
  Message message;
  message.role = fields.text("role").value_or("");
  const std::string& role = message.role;
  // "developer" is what newer clients call "system".
  if (role == "developer") message.role = "system";
  if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
    throw bad_request(fields.path("role"), "'" + fields.path("role") +
                                               "' must be system, developer, user, assistant or "
                                               "tool");
  }
  message.content = content_text(fields, role == "assistant");
  message.name = fields.word("name").value_or("");
  message.reasoning = fields.text("reasoning_content").value_or("");
  message.tool_call_id = fields.word("tool_call_id").value_or("");
  if (role == "assistant") {
    read_tool_calls(fields, message);
  } else {
    fields.refuse("tool_calls");
  }
  for (const char* name : {"function_call", "audio", "refusal"}) fields.refuse(name);
  fields.ignore("annotations");
  fields.refuse_rest();
  return message;
}

size_t Message::bytes() const {
  size_t n = content.size() + name.size() + reasoning.size() + tool_call_id.size();
  for (const ToolCall& call : tool_calls) {
    n += call.id.size() + call.name.size() + call.arguments.size();
  }
  return n;
}

}  // namespace server
