// SPDX-License-Identifier: Apache-2.0
// A request of the OpenAI API as plain values, with all checks that need no model. Knows nothing of
// HTTP and of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace server {

/// Limits of requests, and the keys that the library knows.
struct Dialect {
  std::string model;                  // the one model's name
  std::vector<std::string> adapters;  // names that stand for the model with an adapter
  std::vector<std::string> settings;  // keys of gen_sampling_set that requests may use as they are
  size_t max_prompts = 16;            // prompts of one request
  size_t max_messages = 1024;         // messages of a conversation
  size_t max_stop_strings = 16;       // of "stop"
  size_t max_adapters = 4;            // of "lora", with a scale other than 0
  size_t max_grammar = 64 << 10;      // bytes of "grammar" and the like
  int32_t max_choices = 8;            // "n"
  int32_t max_tokens = 4096;          // maximum of "max_tokens"
  int32_t default_tokens = 16;        // of a completion; a chat has max_tokens
  int max_depth = 64;                 // of the JSON, schemas in it included
  size_t max_values = 1 << 20;        // strings, numbers, truths and nulls in the JSON
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON
};

struct Message {
  std::string role;
  std::string content;
  std::string name;
  std::string reasoning;
  std::string tool_call_id;
  std::vector<ToolCall> tool_calls;

  /// Size of all its texts.
  size_t bytes() const;
};

/// The texts before and after the gap to fill.
struct Gap {
  std::string prefix;
  std::string suffix;
};

/// Text, token ids, or a gap in a text.
using Prompt = std::variant<std::string, std::vector<int32_t>, Gap>;

/// One pair for gen_sampling_set, the key is the field's name too; or for gen_chat_set_variable.
struct Setting {
  std::string key;
  std::string value;
};

/// One of the adapters that make an answer.
struct AdapterUse {
  std::string name;
  float scale = 1;
};

/// A constraint on answers.
struct Language {
  /// "grammar" is GBNF, "lark" a Lark file, "regex" a pattern, "tags" structural tags and
  /// "response_format" a JSON Schema, both as JSON.
  std::string field;
  std::string text;
  std::vector<Setting> options;  // for gen_grammar_options_set, the key is the field's name, too
};

struct Request {
  bool chat = false;
  std::string model;                 // the name that answers have, an adapter's or the model's
  std::vector<AdapterUse> adapters;  // without a name twice
  bool own_mix = false;              // "lora" chose them, and at least one
  std::vector<Prompt> prompts;       // of a completion; at least one
  std::vector<Message> messages;     // of a chat; at least one
  std::vector<Setting> variables;    // of the chat template; values are JSON
  int32_t n = 1;                     // answers per prompt
  int32_t max_tokens = 0;
  bool stream = false;
  bool include_usage = false;     // only with stream
  std::optional<uint64_t> seed;   // answer i of a prompt uses seed + i
  int32_t logprobs = -1;          // as for gen_sampling_set_logprobs
  std::vector<std::string> stop;  // texts that end an answer
  std::vector<Setting> settings;  // temperature and the like
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<Language> language;  // any text without one

  /// Number of answers in all.
  size_t choices() const { return (chat ? 1 : prompts.size()) * static_cast<size_t>(n); }
};

/// The body of /v1/completions. ApiError if it is not what the dialect allows.
Request parse_completion(std::string_view body, const Dialect& dialect);
/// The body of /v1/chat/completions.
Request parse_chat(std::string_view body, const Dialect& dialect);

}  // namespace server
