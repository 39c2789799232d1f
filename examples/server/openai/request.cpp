// SPDX-License-Identifier: Apache-2.0
// See request.h. Fields of the API that would change the answer and cannot be honoured are refused
// unless they have the value that changes nothing; clients send many of them with that value.
#include "request.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "fields.h"

namespace server {
namespace {

using nlohmann::json;

/// Notes for the operator of the API, of no effect on the answer.
constexpr const char* kIgnored[] = {"user",
                                    "metadata",
                                    "store",
                                    "service_tier",
                                    "safety_identifier",
                                    "prompt_cache_key",
                                    "parallel_tool_calls",
                                    "prediction"};

/// Sampling settings that the API has and every library key is named after.
constexpr const char* kSampling[] = {"temperature",       "top_p",           "top_k", "min_p",
                                     "frequency_penalty", "presence_penalty"};

bool is_neutral(const json& value) {
  if (value.is_null() || value == false || value == "") return true;
  return (value.is_array() || value.is_object()) && value.empty();
}

/// Of no effect as it is, else an error.
void refuse(Fields& fields, const std::string& name, const json& harmless = json()) {
  const json* value = fields.find(name);
  if (value == nullptr || is_neutral(*value) || (!harmless.is_null() && *value == harmless)) return;
  throw bad_request(fields.path(name), "'" + fields.path(name) + "' is not supported",
                    "unsupported_parameter");
}

std::string item(const std::string& name, size_t index) {
  return name + "[" + std::to_string(index) + "]";
}

std::string indexed(const Fields& fields, const std::string& name, size_t index) {
  return fields.path(item(name, index));
}

ApiError too_many(const std::string& path, size_t count, size_t limit) {
  return bad_request(path, "'" + path + "' has " + std::to_string(count) + " entries, above " +
                               std::to_string(limit));
}

void read_model(Fields& fields, const Dialect& dialect) {
  const auto model = fields.text("model");
  if (model && *model != dialect.model) {
    throw not_found("model",
                    "no model '" + model->substr(0, 64) + "'; there is '" + dialect.model + "'",
                    "model_not_found");
  }
}

void read_stop(Fields& fields, const Dialect& dialect, Request& request) {
  const json* stop = fields.find("stop");
  if (stop == nullptr) return;
  if (stop->is_string()) {
    request.stop.push_back(stop->get<std::string>());
    return;
  }
  if (!stop->is_array()) {
    throw bad_request("stop",
                      "'stop' must be a string or an array of strings, not " + kind_of(*stop));
  }
  if (stop->size() > dialect.max_stop_strings) {
    throw too_many("stop", stop->size(), dialect.max_stop_strings);
  }
  for (size_t i = 0; i < stop->size(); ++i) {
    const json& text = (*stop)[i];
    if (!text.is_string()) {
      const std::string path = item("stop", i);
      throw bad_request(path, "'" + path + "' must be a string, not " + kind_of(text));
    }
    request.stop.push_back(text.get<std::string>());
  }
}

void read_logit_bias(Fields& fields, Request& request) {
  const json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  const Fields checked(*bias, "logit_bias");
  if (bias->size() > 1024) throw too_many("logit_bias", bias->size(), 1024);
  for (const auto& [name, value] : bias->items()) {
    int32_t token = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (failure != std::errc() || end != name.data() + name.size() || token < 0) {
      throw bad_request("logit_bias", "'logit_bias' has a key that is no token id");
    }
    if (!value.is_number() || value.get<double>() < -100 || value.get<double>() > 100) {
      throw bad_request(checked.path(name),
                        "'" + checked.path(name) + "' must be a number from -100 to 100");
    }
    request.logit_bias.emplace_back(token, value.get<float>());
  }
}

/// "grammar" or "regex"; what is right in one only the library can tell.
void read_language(Fields& fields, const Dialect& dialect, Request& request) {
  for (const char* name : {"grammar", "regex"}) {
    auto text = fields.text(name);
    // No rule at all is how some clients say that any text will do.
    if (!text || (*text == "" && std::string_view(name) == "grammar")) continue;
    const std::string quoted = "'" + std::string(name) + "'";
    if (request.language) {
      throw bad_request(name, quoted + " cannot be beside '" + request.language->field + "'");
    }
    if (text->size() > dialect.max_grammar) {
      throw bad_request(name, quoted + " has " + std::to_string(text->size()) + " bytes, above " +
                                  std::to_string(dialect.max_grammar));
    }
    request.language = Language{name, *std::move(text)};
  }
}

/// A value of gen_sampling_set as text.
void read_setting(Fields& fields, const std::string& name, bool refusable, Request& request) {
  const json* value = fields.find(name);
  if (value == nullptr) return;
  if (value->is_number()) {
    const auto number = value->get<double>();
    // Zero changes nothing, so it need not be known to the library.
    if (refusable && number == 0) return;
    // Off for the library, but to clients of this API a wish for less than nothing.
    const std::string is = "'" + name + "' is " + value->dump();
    if (name == "temperature" && number < 0) throw bad_request(name, is + ", below 0");
    if (name == "top_p" && number <= 0) throw bad_request(name, is + ", not above 0");
    request.settings.push_back({name, value->dump()});
  } else if (value->is_boolean()) {
    request.settings.push_back({name, value->get<bool>() ? "1" : "0"});
  } else {
    throw bad_request(name, "'" + name + "' must be a number, not " + kind_of(*value));
  }
}

void read_sampling(Fields& fields, const Dialect& dialect, Request& request) {
  for (const char* name : kSampling) {
    const std::string_view key(name);
    read_setting(fields, name, key == "frequency_penalty" || key == "presence_penalty", request);
  }
  for (const std::string& name : dialect.settings) {
    bool seen = false;
    for (const char* sampling : kSampling) seen = seen || name == sampling;
    if (!seen) read_setting(fields, name, false, request);
  }
  if (const json* seed = fields.find("seed"); seed != nullptr && seed->is_number_unsigned()) {
    request.seed = seed->get<uint64_t>();
  } else if (const auto value = fields.integer("seed", INT64_MIN, INT64_MAX)) {
    request.seed = static_cast<uint64_t>(*value);
  }
  read_stop(fields, dialect, request);
  read_logit_bias(fields, request);
  read_language(fields, dialect, request);
}

/// What both kinds of requests have.
void read_common(Fields& fields, const Dialect& dialect, Request& request) {
  read_model(fields, dialect);
  request.n = static_cast<int32_t>(fields.integer("n", 1, dialect.max_choices).value_or(1));
  request.stream = fields.flag("stream").value_or(false);
  if (const json* options = fields.find("stream_options"); options != nullptr) {
    Fields inside(*options, "stream_options");
    request.include_usage = inside.flag("include_usage").value_or(false);
    inside.ignore("include_obfuscation");
    inside.refuse_rest();
    if (!request.stream) {
      throw bad_request("stream_options", "'stream_options' needs 'stream'");
    }
  }
  read_sampling(fields, dialect, request);
  for (const char* name : kIgnored) fields.ignore(name);
}

std::vector<int32_t> token_ids(const json& ids, const std::string& path) {
  std::vector<int32_t> out;
  out.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const json& id = ids[i];
    const bool fits =
        id.is_number_unsigned() && id.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
    if (!fits) {
      throw bad_request(item(path, i), "'" + item(path, i) + "' must be a token id");
    }
    out.push_back(id.get<int32_t>());
  }
  return out;
}

/// A string, an array of strings, an array of token ids or an array of arrays of token ids.
void read_prompts(Fields& fields, const Dialect& dialect, Request& request) {
  const json* prompt = fields.find("prompt");
  if (prompt == nullptr) throw bad_request("prompt", "'prompt' is missing");
  if (prompt->is_string()) {
    request.prompts.emplace_back(prompt->get<std::string>());
    return;
  }
  if (!prompt->is_array() || prompt->empty()) {
    throw bad_request("prompt", "'prompt' must be a string, or an array of strings or token ids");
  }
  if (prompt->front().is_number()) {
    request.prompts.emplace_back(token_ids(*prompt, "prompt"));
    return;
  }
  if (prompt->size() > dialect.max_prompts) {
    throw too_many("prompt", prompt->size(), dialect.max_prompts);
  }
  for (size_t i = 0; i < prompt->size(); ++i) {
    const json& one = (*prompt)[i];
    const std::string path = item("prompt", i);
    if (one.is_string()) {
      request.prompts.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      request.prompts.emplace_back(token_ids(one, path));
    } else {
      throw bad_request(
          path, "'" + path + "' must be a string or an array of token ids, not " + kind_of(one));
    }
  }
}

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
    Fields part((*content)[i], indexed(fields, "content", i));
    const std::string type = part.text("type").value_or("");
    const auto piece = part.text("text");
    if (type != "text" || !piece) {
      throw bad_request(part.path("type"), "'" + part.path("type") + "': only text is supported",
                        "unsupported_content");
    }
    text += *piece;
  }
  return text;
}

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
  for (const char* name : {"tool_calls", "function_call", "audio", "refusal"}) {
    refuse(fields, name);
  }
  fields.ignore("name");
  fields.ignore("tool_call_id");
  fields.ignore("annotations");
  fields.refuse_rest();
  return message;
}

void read_messages(Fields& fields, const Dialect& dialect, Request& request) {
  const json* messages = fields.find("messages");
  if (messages == nullptr) throw bad_request("messages", "'messages' is missing");
  if (!messages->is_array() || messages->empty()) {
    throw bad_request("messages", "'messages' must be an array with at least one message");
  }
  if (messages->size() > dialect.max_messages) {
    throw too_many("messages", messages->size(), dialect.max_messages);
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    request.messages.push_back(read_message((*messages)[i], item("messages", i)));
  }
}

}  // namespace

Request parse_completion(std::string_view body, const Dialect& dialect) {
  const json value = parse_json(body, dialect.max_depth);
  Fields fields(value, {});
  Request request;
  read_common(fields, dialect, request);
  read_prompts(fields, dialect, request);
  const int32_t most = std::min(dialect.default_tokens, dialect.max_tokens);
  request.max_tokens =
      static_cast<int32_t>(fields.integer("max_tokens", 1, dialect.max_tokens).value_or(most));
  request.logprobs = static_cast<int32_t>(fields.integer("logprobs", 0, 20).value_or(-1));
  refuse(fields, "echo");
  refuse(fields, "suffix");
  refuse(fields, "best_of", request.n);
  fields.refuse_rest();
  return request;
}

Request parse_chat(std::string_view body, const Dialect& dialect) {
  const json value = parse_json(body, dialect.max_depth);
  Fields fields(value, {});
  Request request;
  request.chat = true;
  read_common(fields, dialect, request);
  read_messages(fields, dialect, request);
  const auto older = fields.integer("max_tokens", 1, dialect.max_tokens);
  const auto newer = fields.integer("max_completion_tokens", 1, dialect.max_tokens);
  const int64_t most = newer.value_or(older.value_or(dialect.max_tokens));
  request.max_tokens = static_cast<int32_t>(most);

  const bool logprobs = fields.flag("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && *top > 0 && !logprobs) {
    throw bad_request("top_logprobs", "'top_logprobs' needs 'logprobs'");
  }
  if (logprobs) request.logprobs = static_cast<int32_t>(top.value_or(0));

  for (const char* name : {"tools", "functions", "modalities", "audio", "web_search_options"}) {
    refuse(fields, name);
  }
  refuse(fields, "tool_choice", "none");
  refuse(fields, "function_call", "none");
  refuse(fields, "response_format", {{"type", "text"}});
  refuse(fields, "reasoning_effort", "none");
  fields.refuse_rest();
  return request;
}

}  // namespace server
