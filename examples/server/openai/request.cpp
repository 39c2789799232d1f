// SPDX-License-Identifier: Apache-2.0
// See request.h. Fields of the API that would change the answer and are not supported are refused
// unless they have a value without effect; many clients send them with that value.
#include "request.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "as_written.h"
#include "fields.h"
#include "lora.h"
#include "message.h"

namespace server {
namespace {

using nlohmann::json;

/// Notes for the operator of the API, without effect on the answer.
constexpr const char* kIgnored[] = {"user",
                                    "metadata",
                                    "store",
                                    "service_tier",
                                    "safety_identifier",
                                    "prompt_cache_key",
                                    "prompt_cache_options",
                                    "prompt_cache_retention",
                                    "parallel_tool_calls",
                                    "prediction"};

/// Options of grammars, about the JSON in answers.
constexpr const char* kJsonOptions[] = {"json_style", "json_order", "json_space", "json_digits"};

/// Sampling settings of the API whose names are also library keys.
constexpr const char* kSampling[] = {"temperature",       "top_p",           "top_k", "min_p",
                                     "frequency_penalty", "presence_penalty"};

/// A request, and the parts of it that only the library reads.
struct Body {
  json value;
  std::string schema;  // of response_format
  std::string tags;
};

Body read_body(std::string_view text, const Dialect& dialect) {
  Body body;
  std::string room;
  text = take_as_written(text, {"tags"}, &body.tags, &room);
  text = take_as_written(text, {"response_format", "json_schema", "schema"}, &body.schema, &room);
  body.value = parse_json(text, dialect.max_depth, dialect.max_values);
  return body;
}

ApiError too_many(const std::string& path, size_t count, size_t limit) {
  return bad_request(path, "'" + path + "' has " + std::to_string(count) + " entries, above " +
                               std::to_string(limit));
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
      throw bad_request("logit_bias", "'logit_bias' has a key that is not a token id");
    }
    if (!value.is_number() || value.get<double>() < -100 || value.get<double>() > 100) {
      throw bad_request(checked.path(name),
                        "'" + checked.path(name) + "' must be a number from -100 to 100");
    }
    request.logit_bias.emplace_back(token, value.get<float>());
  }
}

void set_language(const std::string& name, std::string text, const Dialect& dialect,
                  Request& request) {
  const std::string quoted = "'" + name + "'";
  if (request.language) {
    throw bad_request(name, quoted + " cannot be combined with '" + request.language->field + "'");
  }
  if (text.size() > dialect.max_grammar) {
    throw bad_request(name, quoted + " has " + std::to_string(text.size()) + " bytes, above " +
                                std::to_string(dialect.max_grammar));
  }
  request.language = Language{name, std::move(text), {}};
}

/// {"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "json_schema": {"schema":
/// …}}
void read_response_format(Fields& fields, const Body& body, const Dialect& dialect,
                          Request& request) {
  constexpr const char* kName = "response_format";
  const json* value = fields.find(kName);
  if (value == nullptr) return;
  Fields format(*value, kName);
  const std::string type = format.text("type").value_or("");
  if (type == "json_object") {
    set_language(kName, R"({"type": "object"})", dialect, request);
  } else if (type == "json_schema") {
    const json* described = format.find("json_schema");
    const std::string where = format.path("json_schema");
    if (described == nullptr) throw bad_request(where, "'" + where + "' is missing");
    Fields inside(*described, where);
    if (inside.find("schema") == nullptr) {
      throw bad_request(inside.path("schema"), "'" + inside.path("schema") + "' is missing");
    }
    set_language(kName, body.schema, dialect, request);
    // Answers are valid under the whole schema, or the request is refused: "strict" adds nothing.
    static_cast<void>(inside.text("name"));
    static_cast<void>(inside.text("description"));
    static_cast<void>(inside.flag("strict"));
    inside.refuse_rest();
  } else if (type != "text") {
    throw bad_request(format.path("type"),
                      "'" + format.path("type") + "' must be text, json_object or json_schema");
  }
  format.refuse_rest();
}

/// "grammar", "lark", "regex", "tags" or "response_format"; only the library can check their
/// content.
void read_language(Fields& fields, const Body& body, const Dialect& dialect, Request& request) {
  for (const char* name : {"grammar", "lark", "regex"}) {
    auto text = fields.text(name);
    // Some clients send an empty grammar to allow any text.
    if (!text || (*text == "" && std::string_view(name) == "grammar")) continue;
    set_language(name, *std::move(text), dialect, request);
  }
  if (fields.find("tags") != nullptr) {
    set_language("tags", body.tags, dialect, request);
  }
  read_response_format(fields, body, dialect, request);
  for (const char* name : kJsonOptions) {
    const json* value = fields.find(name);
    if (value == nullptr) continue;
    const std::string quoted = "'" + std::string(name) + "'";
    if (!request.language || request.language->field == "grammar" ||
        request.language->field == "regex") {
      throw bad_request(name, quoted + " needs 'response_format', 'tags' or 'lark'");
    }
    if (!value->is_string() && !value->is_number_integer()) {
      throw bad_request(name,
                        quoted + " must be a string or a whole number, not " + kind_of(*value));
    }
    std::string text = value->is_string() ? value->get<std::string>() : value->dump();
    refuse_nul(name, text);
    request.language->options.push_back({name, std::move(text)});
  }
}

/// A value of gen_sampling_set as text.
void read_setting(Fields& fields, const std::string& name, bool refusable, Request& request) {
  const json* value = fields.find(name);
  if (value == nullptr) return;
  if (value->is_number()) {
    const auto number = value->get<double>();
    // Zero has no effect, so the library need not know the key.
    if (refusable && number == 0) return;
    // Off for the library, but an error in this API.
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

void read_sampling(Fields& fields, const Body& body, const Dialect& dialect, Request& request) {
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
  read_language(fields, body, dialect, request);
}

/// Fields of both kinds of requests.
void read_common(Fields& fields, const Body& body, const Dialect& dialect, Request& request) {
  read_model(fields, dialect, request);
  request.n = static_cast<int32_t>(fields.integer("n", 1, dialect.max_choices).value_or(1));
  request.stream = fields.flag("stream").value_or(false);
  if (const json* options = fields.find("stream_options"); options != nullptr) {
    Fields inside(*options, "stream_options");
    request.include_usage = inside.flag("include_usage").value_or(false);
    inside.ignore("include_obfuscation");
    inside.refuse_rest();
    if (request.include_usage && !request.stream) {
      throw bad_request("stream_options", "'stream_options' needs 'stream'");
    }
  }
  read_sampling(fields, body, dialect, request);
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
  if (prompt == nullptr) {
    if (!fields.has("prompt")) throw bad_request("prompt", "'prompt' is missing");
    request.prompts.emplace_back(std::string());  // null: an empty text
    return;
  }
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

/// A suffix turns prompts into gaps.
void read_suffix(Fields& fields, Request& request) {
  auto suffix = fields.text("suffix");
  if (!suffix || suffix->empty()) return;
  for (Prompt& prompt : request.prompts) {
    auto* prefix = std::get_if<std::string>(&prompt);
    if (prefix == nullptr) {
      throw bad_request("suffix", "'suffix' needs prompts that are text, not token ids");
    }
    prompt = Gap{std::move(*prefix), *suffix};
  }
}

/// Variables of the chat template.
void read_variables(Fields& fields, Request& request) {
  const json* given = fields.find("chat_template_kwargs");
  if (given != nullptr) {
    if (!given->is_object()) {
      throw bad_request("chat_template_kwargs",
                        "'chat_template_kwargs' must be an object, not " + kind_of(*given));
    }
    for (const auto& [name, value] : given->items()) {
      refuse_nul("chat_template_kwargs", name);
      request.variables.push_back({name, value.dump()});
    }
  }
  if (const auto effort = fields.text("reasoning_effort")) {
    request.variables.push_back({"reasoning_effort", json(*effort).dump()});
  }
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

Request parse_completion(std::string_view text, const Dialect& dialect) {
  const Body body = read_body(text, dialect);
  Fields fields(body.value, {});
  Request request;
  read_common(fields, body, dialect, request);
  read_prompts(fields, dialect, request);
  read_suffix(fields, request);
  const int32_t most = std::min(dialect.default_tokens, dialect.max_tokens);
  request.max_tokens =
      static_cast<int32_t>(fields.integer("max_tokens", 1, dialect.max_tokens).value_or(most));
  request.logprobs = static_cast<int32_t>(fields.integer("logprobs", 0, 20).value_or(-1));
  fields.refuse("echo");
  fields.refuse("best_of", {request.n});
  fields.refuse_rest();
  return request;
}

Request parse_chat(std::string_view text, const Dialect& dialect) {
  const Body body = read_body(text, dialect);
  Fields fields(body.value, {});
  Request request;
  request.chat = true;
  read_common(fields, body, dialect, request);
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

  for (const char* name : {"tools", "functions", "audio", "web_search_options", "moderation"}) {
    fields.refuse(name);
  }
  // Without tools there is no choice.
  for (const char* name : {"tool_choice", "function_call"}) fields.refuse(name, {"none", "auto"});
  fields.refuse("modalities", {json::array({"text"})});
  fields.refuse("verbosity", {"medium"});
  read_variables(fields, request);
  fields.refuse_rest();
  return request;
}

}  // namespace server
