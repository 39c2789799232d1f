// SPDX-License-Identifier: Apache-2.0
// A conversation as plain data: messages, tools and variables of the template. chat_form.h renders
// it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "template/clock.h"
#include "template/template.h"

namespace gen::chat {

struct ToolCall {
  std::string id;         // may be empty
  std::string name;       // of the function
  std::string arguments;  // JSON
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", …
  std::string content;  // any UTF-8, like all texts here
  std::string reasoning = {};
  std::string name = {};
  std::string tool_call_id = {};
  std::vector<ToolCall> tool_calls = {};
  /// Of an answer with calls, all that the model wrote: for templates that do not show calls. Where
  /// control tokens begin and end in it, in pairs.
  std::string written = {};
  std::vector<size_t> controls = {};
  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

/// kInvalidArgument for a role that is empty, and for what is not UTF-8.
Result<ChatMessage> chat_message(std::string_view role, std::string_view content);

/// Threads: a value type. Additions are checked first; a failure changes nothing.
struct Conversation {
  std::vector<ChatMessage> messages;
  std::vector<std::string> tools;                              // JSON
  std::vector<std::pair<std::string, std::string>> variables;  // names and their JSON
  std::string source;                                          // of `form`
  std::shared_ptr<const templates::Template> form;             // null: the model's own
  std::optional<templates::LocalTime> now;                     // by default the machine's clock

  /// Adds a call by the assistant: to the last message if that is the assistant's, else to a new
  /// one without text. kInvalidArgument for an empty name, invalid UTF-8, or arguments that are not
  /// a JSON object.
  Status add_tool_call(std::string_view id, std::string_view name, std::string_view arguments);
  /// Adds a tool's result. `id` and `name` may be empty. kInvalidArgument as chat_message().
  Status add_tool_result(std::string_view id, std::string_view name, std::string_view content);
  /// Adds a description. kInvalidArgument if it is not a JSON object.
  Status add_tool(std::string_view description);
  /// Sets or replaces a value. kInvalidArgument for an invalid or reserved name, and for invalid
  /// JSON.
  Status set_variable(std::string_view name, std::string_view value);
  /// A template, or the name of a built-in form; empty: the model's own. kInvalidArgument for an
  /// unknown name; else as Template::compile.
  Status set_template(std::string_view text);
  /// Keeps the first n messages, or removes the last -n. kOutOfRange if there are fewer.
  Status truncate(int64_t n);
  /// Messages, tools and variables as a JSON object.
  [[nodiscard]] std::string describe() const;
  /// Of the last message. kState if there is none, kInvalidArgument for invalid UTF-8.
  Status set_name(std::string_view name);
  Status set_reasoning(std::string_view text);
  /// As LocalTime::from_iso; empty: the machine's clock.
  Status set_time(std::string_view iso);
};

}  // namespace gen::chat
