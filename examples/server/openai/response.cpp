// SPDX-License-Identifier: Apache-2.0
// See response.h.
#include "response.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace server {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity; the API writes this number for what cannot be.
double finite(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0;
}

/// Characters that begin in `bytes`.
size_t characters(std::string_view bytes) {
  return static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

/// {"token","logprob","bytes"} of a chat.
Json piece_json(const ScoredPiece& piece) {
  Json bytes = Json::array();
  for (const char c : piece.bytes) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", piece.bytes}, {"logprob", finite(piece.logprob)}, {"bytes", bytes}};
}

Json chat_logprobs(const std::vector<ScoredToken>& tokens) {
  Json content = Json::array();
  for (const ScoredToken& token : tokens) {
    Json one = piece_json(token.piece);
    one["top_logprobs"] = Json::array();
    for (const ScoredPiece& piece : token.top) one["top_logprobs"].push_back(piece_json(piece));
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}};
}

Json completion_logprobs(const std::vector<ScoredToken>& tokens) {
  Json json = {{"tokens", Json::array()},
               {"token_logprobs", Json::array()},
               {"top_logprobs", Json::array()},
               {"text_offset", Json::array()}};
  size_t offset = 0;
  for (const ScoredToken& token : tokens) {
    json["tokens"].push_back(token.piece.bytes);
    json["token_logprobs"].push_back(finite(token.piece.logprob));
    Json top = Json::object();
    for (const ScoredPiece& piece : token.top) top[piece.bytes] = finite(piece.logprob);
    json["top_logprobs"].push_back(std::move(top));
    json["text_offset"].push_back(offset);
    offset += characters(token.piece.bytes);
  }
  return json;
}

Json logprobs_json(const Heading& heading, const Choice& choice) {
  if (!heading.logprobs) return nullptr;
  return heading.chat ? chat_logprobs(choice.tokens) : completion_logprobs(choice.tokens);
}

Json usage_json(const Usage& usage) {
  Json json = {{"prompt_tokens", usage.prompt_tokens},
               {"completion_tokens", usage.completion_tokens},
               {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
               {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  if (usage.drafted_tokens > 0) {
    json["completion_tokens_details"] = {
        {"accepted_prediction_tokens", usage.accepted_tokens},
        {"rejected_prediction_tokens", usage.drafted_tokens - usage.accepted_tokens}};
  }
  return json;
}

Json headed(const Heading& heading, const char* object) {
  return {{"id", heading.id},
          {"object", object},
          {"created", heading.created},
          {"model", heading.model},
          {"choices", Json::array()}};
}

Json chunk(const Heading& heading) {
  return headed(heading, heading.chat ? "chat.completion.chunk" : "text_completion");
}

/// A chunk with one choice, whose text is under "delta" in chats.
Json chunk_with(const Heading& heading, size_t index, Json delta, std::string_view text) {
  Json choice = {{"index", index}};
  if (heading.chat) {
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = nullptr;
  Json json = chunk(heading);
  json["choices"].push_back(std::move(choice));
  return json;
}

}  // namespace

Json answer_json(const Heading& heading, const std::vector<Choice>& choices, const Usage& usage) {
  Json json = headed(heading, heading.chat ? "chat.completion" : "text_completion");
  for (const Choice& choice : choices) {
    Json one = {{"index", choice.index}};
    if (heading.chat) {
      one["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    } else {
      one["text"] = choice.text;
    }
    one["logprobs"] = logprobs_json(heading, choice);
    one["finish_reason"] = choice.finish_reason;
    json["choices"].push_back(std::move(one));
  }
  json["usage"] = usage_json(usage);
  return json;
}

Json role_chunk(const Heading& heading, size_t index) {
  return chunk_with(heading, index, {{"role", "assistant"}, {"content", ""}}, "");
}

Json text_chunk(const Heading& heading, size_t index, std::string_view text) {
  return chunk_with(heading, index, {{"content", text}}, text);
}

Json end_chunk(const Heading& heading, const Choice& choice) {
  Json json = chunk_with(heading, choice.index, Json::object(), "");
  json["choices"][0]["logprobs"] = logprobs_json(heading, choice);
  json["choices"][0]["finish_reason"] = choice.finish_reason;
  return json;
}

Json usage_chunk(const Heading& heading, const Usage& usage) {
  Json json = chunk(heading);
  json["usage"] = usage_json(usage);
  return json;
}

std::string dump(const Json& data) {
  return data.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string event(const Json& data) { return "data: " + dump(data) + "\n\n"; }

std::string_view end_of_events() { return "data: [DONE]\n\n"; }

Json model_json(const std::string& model, int64_t created) {
  return {{"id", model}, {"object", "model"}, {"created", created}, {"owned_by", "libgenerate"}};
}

Json models_json(const std::string& model, int64_t created) {
  return {{"object", "list"}, {"data", Json::array({model_json(model, created)})}};
}

}  // namespace server
