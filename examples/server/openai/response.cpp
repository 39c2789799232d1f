// SPDX-License-Identifier: Apache-2.0
// See response.h.
#include "response.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace server {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity; the API writes this number for impossible tokens.
double finite(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0;
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
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

bool is_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto at = [&](size_t k) { return static_cast<unsigned char>(bytes[k]); };
    const unsigned lead = at(i++);
    if (lead < 0x80U) continue;
    const size_t more = lead >= 0xF0U ? 3 : lead >= 0xE0U ? 2 : 1;
    if (lead < 0xC2U || lead > 0xF4U || bytes.size() - i < more) return false;
    // No overlong forms, no surrogates, nothing beyond the last character.
    const unsigned low = lead == 0xE0U ? 0xA0U : lead == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = lead == 0xEDU ? 0x9FU : lead == 0xF4U ? 0x8FU : 0xBFU;
    if (at(i) < low || at(i) > high) return false;
    for (const size_t end = i + more; i < end; ++i) {
      if ((at(i) & 0xC0U) != 0x80U) return false;
    }
  }
  return true;
}

/// A token as completions name it: its text, or "bytes:\xe2\x82" if that is no text by itself.
std::string name_of(const ScoredPiece& piece) {
  if (is_utf8(piece.bytes)) return piece.bytes;
  std::string name = "bytes:";
  for (const char c : piece.bytes) {
    char digits[5];
    std::snprintf(digits, sizeof digits, "\\x%02x", static_cast<unsigned char>(c));
    name += digits;
  }
  return name;
}

/// The best tokens at a position and the drawn one, by name. Of those with the same name the drawn
/// one keeps it, else the best; the key of any other contains its id.
Json top_by_name(const ScoredToken& token) {
  const auto drawn = [&](const ScoredPiece& piece) { return piece.id == token.piece.id; };
  const std::string drawn_name = name_of(token.piece);
  Json top = Json::object();
  const auto add = [&](const ScoredPiece& piece) {
    std::string name = name_of(piece);
    while (top.contains(name) || (!drawn(piece) && name == drawn_name)) {
      name = "token_id:" + std::to_string(piece.id) + ":" + name;
    }
    top[name] = finite(piece.logprob);
  };
  for (const ScoredPiece& piece : token.top) add(piece);
  if (std::none_of(token.top.begin(), token.top.end(), drawn)) add(token.piece);
  return top;
}

Json completion_logprobs(const std::vector<ScoredToken>& tokens) {
  Json json = {{"tokens", Json::array()},
               {"token_logprobs", Json::array()},
               {"top_logprobs", Json::array()},
               {"text_offset", Json::array()}};
  for (const ScoredToken& token : tokens) {
    json["tokens"].push_back(name_of(token.piece));
    json["token_logprobs"].push_back(finite(token.piece.logprob));
    json["top_logprobs"].push_back(top_by_name(token));
    json["text_offset"].push_back(token.offset);
  }
  return json;
}

Json logprobs_json(const Heading& heading, const Choice& choice) {
  if (!heading.logprobs) return nullptr;
  return heading.chat ? chat_logprobs(choice.tokens) : completion_logprobs(choice.tokens);
}

Json reason_json(const Choice& choice) {
  return choice.finish_reason == nullptr ? Json() : Json(choice.finish_reason);
}

Json usage_json(const Usage& usage) {
  Json json = {
      {"prompt_tokens", usage.prompt_tokens},
      {"completion_tokens", usage.completion_tokens},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
      {"prompt_tokens_details",
       {{"cached_tokens", usage.cached_tokens}, {"evaluated_tokens", usage.evaluated_tokens}}}};
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
  Json json = headed(heading, heading.chat ? "chat.completion.chunk" : "text_completion");
  if (heading.usage) json["usage"] = nullptr;
  return json;
}

/// A chunk with one choice, whose text is under "delta" in chats.
Json chunk_with(const Heading& heading, const Choice& part, Json delta) {
  Json choice = {{"index", part.index}};
  if (heading.chat) {
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = part.text;
  }
  choice["logprobs"] = part.tokens.empty() ? Json() : logprobs_json(heading, part);
  choice["finish_reason"] = reason_json(part);
  Json json = chunk(heading);
  json["choices"].push_back(std::move(choice));
  return json;
}

}  // namespace

size_t characters(std::string_view bytes) {
  return static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

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
    one["finish_reason"] = reason_json(choice);
    json["choices"].push_back(std::move(one));
  }
  json["usage"] = usage_json(usage);
  return json;
}

Json role_chunk(const Heading& heading, size_t index) {
  return chunk_with(heading, {index, {}, nullptr, {}}, {{"role", "assistant"}, {"content", ""}});
}

Json text_chunk(const Heading& heading, const Choice& piece) {
  return chunk_with(heading, piece, {{"content", piece.text}});
}

Json end_chunk(const Heading& heading, const Choice& choice) {
  return chunk_with(heading, choice, Json::object());
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

Json model_json(const std::string& name, const std::string& model, int64_t created) {
  Json json = {
      {"id", name}, {"object", "model"}, {"created", created}, {"owned_by", "libgenerate"}};
  if (name != model) json["parent"] = model;
  return json;
}

Json models_json(const std::string& model, const std::vector<std::string>& adapters,
                 int64_t created) {
  Json data = Json::array({model_json(model, model, created)});
  for (const std::string& name : adapters) data.push_back(model_json(name, model, created));
  return {{"object", "list"}, {"data", std::move(data)}};
}

Json adapters_json(const std::vector<std::string>& adapters) {
  Json list = Json::array();
  for (const std::string& name : adapters) {
    list.push_back({{"id", list.size()}, {"name", name}, {"scale", 0.0}});
  }
  return list;
}

}  // namespace server
