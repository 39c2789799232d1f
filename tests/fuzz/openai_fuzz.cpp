// SPDX-License-Identifier: Apache-2.0
// Request bodies for the example server. Nothing may crash or trip a sanitizer; a request that is
// taken keeps every limit, one that is refused has a status and a body that is JSON, and any bytes
// make one event of a stream. The first byte chooses between the two kinds of requests.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "openai/api_error.h"
#include "openai/request.h"
#include "openai/response.h"

namespace {

using namespace server;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

bool all_utf8(const Request& request) {
  const auto valid = [](const std::string& text) { return gen::utf8_valid(text); };
  return std::all_of(request.stop.begin(), request.stop.end(), valid) &&
         std::all_of(request.messages.begin(), request.messages.end(),
                     [&](const Message& message) { return valid(message.content); }) &&
         std::all_of(request.prompts.begin(), request.prompts.end(), [&](const Prompt& prompt) {
           if (const auto* gap = std::get_if<Gap>(&prompt)) {
             return valid(gap->prefix) && valid(gap->suffix);
           }
           return prompt.index() == 1 || valid(std::get<std::string>(prompt));
         });
}

void expect_limits(const Request& request, const Dialect& dialect) {
  require(request.n >= 1 && request.n <= dialect.max_choices);
  require(request.max_tokens >= 1 && request.max_tokens <= dialect.max_tokens);
  require(request.logprobs >= -1 && request.logprobs <= 20);
  require(request.stop.size() <= dialect.max_stop_strings);
  require(request.chat ? request.prompts.empty() : request.messages.empty());
  require(request.messages.size() <= dialect.max_messages);
  require(request.prompts.size() <= dialect.max_prompts);
  require(request.choices() >= 1);
  require(all_utf8(request));
  for (const Prompt& prompt : request.prompts) {
    if (prompt.index() != 1) continue;
    for (const int32_t id : std::get<1>(prompt)) require(id >= 0);
  }
  require(request.adapters.size() <= dialect.max_adapters);
  for (const AdapterUse& use : request.adapters) {
    const auto& names = dialect.adapters;
    require(std::find(names.begin(), names.end(), use.name) != names.end());
    require(std::isfinite(use.scale) && use.scale != 0);
  }
  for (const Setting& setting : request.settings) {
    require(!setting.value.empty() && setting.value.find('\0') == std::string::npos);
  }
}

void parse(std::string_view body, bool chat) {
  Dialect dialect;
  dialect.model = "m";
  dialect.adapters = {"a", "b", "c", "d", "e"};
  dialect.settings = {"ignore_eos", "repetition_penalty"};
  try {
    expect_limits(chat ? parse_chat(body, dialect) : parse_completion(body, dialect), dialect);
  } catch (const ApiError& error) {
    require(error.status == 400 || error.status == 404);
    const auto json = nlohmann::json::parse(dump(error_json(error)));
    require(json.at("error").at("message").is_string());
  }
}

void write(const std::string& bytes, bool chat) {
  const Heading heading = {"id", "m", 0, chat, true};
  Choice choice;
  choice.text = bytes;
  choice.tokens = {{{1, bytes, -1}, {{1, bytes, -1}, {2, "a", -2}, {3, bytes, -3}}}};
  const std::string line = event(text_chunk(heading, choice));
  require(line.find_first_of("\r\n") == line.size() - 2);
  const auto text = nlohmann::json::parse(line.substr(6)).at("choices").at(0);
  const auto content = chat ? text.at("delta").at("content") : text.at("text");
  if (gen::utf8_valid(bytes)) require(content.get<std::string>() == bytes);
  if (!chat) {
    const auto name = text.at("logprobs").at("tokens").at(0).get<std::string>();
    require(gen::utf8_valid(bytes) ? name == bytes : name.rfind("bytes:\\x", 0) == 0);
    require(text.at("logprobs").at("top_logprobs").at(0).size() == 3);
  }
  require(nlohmann::json::parse(dump(answer_json(heading, {choice}, {1, 1, 0}))).is_object());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool chat = data[0] % 2 == 1;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  parse(body, chat);
  write(body, chat);
  return 0;
}
