// SPDX-License-Identifier: Apache-2.0
// See conversation.h.
#include "chat/conversation.h"

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "base/utf8.h"
#include "template/json.h"
#include "chat/builtin_forms.h"

namespace gen::chat {
namespace {

using templates::Kind;

// Variables that the library itself sets.
constexpr std::string_view kOwnVariables[] = {"messages", "tools", "add_generation_prompt",
                                              "bos_token", "eos_token"};

Status check_utf8(std::string_view text, const char* what) {
  const size_t valid = utf8_valid_prefix(text);
  if (valid == text.size()) return {};
  return error(Code::kInvalidArgument, "%s is not UTF-8 at byte %zu of %zu", what, valid,
               text.size());
}

// Values that Python's JSON has beyond standard JSON. The depth of values from a text is limited.
bool has_nonfinite(const templates::Value& value) {
  if (value.is(Kind::kFloat)) return !std::isfinite(value.number);
  if (value.is(Kind::kSequence)) {
    const auto& values = value.sequence().values;
    return std::any_of(values.begin(), values.end(), has_nonfinite);
  }
  if (!value.is(Kind::kDict)) return false;
  const auto& entries = value.dict().entries;
  return std::any_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return has_nonfinite(entry.second); });
}

Status check_json(std::string_view text, const char* what, bool object) {
  GEN_TRY(check_utf8(text, what));
  templates::Heap heap;
  auto read = templates::read_json(text, &heap, templates::Writer::kUser);
  if (!read.ok()) {
    if (read.status().code() != Code::kInvalidArgument) return read.status();
    return error(Code::kInvalidArgument, "%s: %s", what, read.status().message());
  }
  if (has_nonfinite(*read)) {
    return error(Code::kInvalidArgument, "%s: NaN and Infinity are no JSON", what);
  }
  if (object && !read->is(Kind::kDict)) {
    return error(Code::kInvalidArgument, "%s must be a JSON object", what);
  }
  return {};
}

bool is_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// A message as JSON, with the members that templates see.
std::string described(const ChatMessage& message) {
  std::string out =
      "{\"role\":" + json_quote(message.role) + ",\"content\":" + json_quote(message.content);
  const auto member = [&](const char* key, const std::string& text) {
    if (!text.empty()) out += std::string(",\"") + key + "\":" + json_quote(text);
  };
  member("reasoning_content", message.reasoning);
  member("name", message.name);
  member("tool_call_id", message.tool_call_id);
  const char* comma = ",\"tool_calls\":[";
  for (const ToolCall& call : message.tool_calls) {
    out += std::string(comma) + "{\"type\":\"function\"";
    member("id", call.id);
    out += ",\"function\":{\"name\":" + json_quote(call.name) + ",\"arguments\":" + call.arguments +
           "}}";
    comma = ",";
  }
  return out + (message.tool_calls.empty() ? "}" : "]}");
}

}  // namespace

Result<ChatMessage> chat_message(std::string_view role, std::string_view content) {
  if (role.empty()) return error(Code::kInvalidArgument, "role is empty");
  if (!utf8_valid(role)) return error(Code::kInvalidArgument, "role is not UTF-8");
  GEN_TRY(check_utf8(content, "text"));
  return ChatMessage{std::string(role), std::string(content)};
}

Status Conversation::add_tool_call(std::string_view id, std::string_view name,
                                   std::string_view arguments) {
  if (name.empty()) return error(Code::kInvalidArgument, "name is empty");
  GEN_TRY(check_utf8(name, "name"));
  GEN_TRY(check_utf8(id, "id"));
  GEN_TRY(check_json(arguments, "arguments", true));
  ToolCall call{std::string(id), std::string(name), std::string(arguments)};
  if (!messages.empty() && messages.back().role == "assistant") {
    messages.back().tool_calls.push_back(std::move(call));
    return {};
  }
  ChatMessage message{"assistant", ""};
  message.tool_calls.push_back(std::move(call));
  messages.push_back(std::move(message));
  return {};
}

Status Conversation::add_tool_result(std::string_view id, std::string_view name,
                                     std::string_view content) {
  GEN_TRY(check_utf8(name, "name"));
  GEN_TRY(check_utf8(id, "id"));
  GEN_ASSIGN(ChatMessage message, chat_message("tool", content));
  message.name = name;
  message.tool_call_id = id;
  messages.push_back(std::move(message));
  return {};
}

Status Conversation::add_tool(std::string_view description) {
  GEN_TRY(check_json(description, "tool", true));
  tools.emplace_back(description);
  return {};
}

Status Conversation::set_variable(std::string_view name, std::string_view value) {
  if (!is_name(name)) {
    return error(Code::kInvalidArgument, "'%.*s' is no name of a variable",
                 static_cast<int>(std::min<size_t>(name.size(), 64)), name.data());
  }
  if (std::find(std::begin(kOwnVariables), std::end(kOwnVariables), name) !=
      std::end(kOwnVariables)) {
    return error(Code::kInvalidArgument, "the variable %.*s is set by the library",
                 static_cast<int>(name.size()), name.data());
  }
  const std::string what = "the value of " + std::string(name.substr(0, 64));
  const Status checked = check_json(value, what.c_str(), false);
  if (checked.code() == Code::kInvalidArgument) {
    return error(Code::kInvalidArgument, "%s (a string has its quotes: \"high\")",
                 checked.message());
  }
  GEN_TRY(checked);
  for (auto& [known, json] : variables) {
    if (known != name) continue;
    json = std::string(value);
    return {};
  }
  variables.emplace_back(name, value);
  return {};
}

Status Conversation::set_template(std::string_view text) {
  if (text.empty()) {
    source.clear();
    form = nullptr;
    return {};
  }
  GEN_TRY(check_utf8(text, "template"));
  std::string_view body = text;
  if (const BuiltinForm* const named = form_named(text)) {
    body = named->source;
  } else if (text.find_first_of("{ \t\r\n") == std::string_view::npos) {
    return error(Code::kInvalidArgument, "no form is named %.40s, known are %s",
                 std::string(text).c_str(), form_names().c_str());
  }
  GEN_ASSIGN(auto compiled, templates::Template::compile(body));
  std::string kept(body);
  source = std::move(kept);
  form = std::move(compiled);
  return {};
}

Status Conversation::truncate(int64_t n) {
  const auto all = static_cast<int64_t>(messages.size());
  if (n > all || n < -all) {
    return error(Code::kOutOfRange, "%lld messages of %zu", static_cast<long long>(n),
                 messages.size());
  }
  messages.erase(n < 0 ? messages.end() + n : messages.begin() + n, messages.end());
  return {};
}

std::string Conversation::describe() const {
  std::string out = "{\"messages\":[";
  const char* comma = "";
  for (const ChatMessage& message : messages) {
    out += comma + described(message);
    comma = ",";
  }
  out += "],\"tools\":[";
  comma = "";
  for (const std::string& tool : tools) {
    out += comma + tool;
    comma = ",";
  }
  out += "],\"variables\":{";
  comma = "";
  for (const auto& [name, json] : variables) {
    out += comma + json_quote(name) + ":" + json;
    comma = ",";
  }
  return out + "}}";
}

Status Conversation::set_name(std::string_view name) {
  if (messages.empty()) return {Code::kState, "the conversation has no message"};
  GEN_TRY(check_utf8(name, "name"));
  messages.back().name = std::string(name);
  return {};
}

Status Conversation::set_reasoning(std::string_view text) {
  if (messages.empty()) return {Code::kState, "the conversation has no message"};
  GEN_TRY(check_utf8(text, "text"));
  messages.back().reasoning = std::string(text);
  return {};
}

Status Conversation::set_time(std::string_view iso) {
  if (iso.empty()) {
    now.reset();
    return {};
  }
  GEN_ASSIGN(now, templates::LocalTime::from_iso(iso));
  return {};
}

}  // namespace gen::chat
