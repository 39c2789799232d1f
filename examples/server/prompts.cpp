// SPDX-License-Identifier: Apache-2.0
// See prompts.h.
#include "prompts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace server {
namespace {

void check(gen_status status, const gen_error& error, const std::string& param) {
  if (status != GEN_OK) throw library_error(status, error.message, param);
}

Tokens encode(const gen_model* model, const std::string& text, uint32_t flags,
              const std::string& param) {
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model);
  Tokens ids(text.size() + 8);
  size_t n = 0;
  gen_error error;
  gen_status status = gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(),
                                           ids.size(), &n, &error);
  if (status == GEN_ERROR_OUT_OF_RANGE) {
    ids.resize(n);
    status = gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(),
                                  ids.size(), &n, &error);
  }
  check(status, error, param);
  ids.resize(n);
  return ids;
}

Tokens encode_chat(const gen_model* model, const Request& request) {
  auto chat = cli::make<cli::Chat>(gen_chat_new);
  gen_error error;
  for (size_t i = 0; i < request.messages.size(); ++i) {
    const Message& message = request.messages[i];
    check(gen_chat_add(chat.get(), message.role.c_str(), message.content.data(),
                       message.content.size(), &error),
          error, "messages[" + std::to_string(i) + "].content");
  }
  size_t n = 0;
  check(gen_chat_format(model, chat.get(), 1, nullptr, 0, &n, &error), error, "messages");
  std::string text(n + 1, '\0');
  check(gen_chat_format(model, chat.get(), 1, text.data(), text.size(), &n, &error), error,
        "messages");
  text.resize(n);
  return encode(model, text, GEN_ENCODE_ADD_BOS | GEN_ENCODE_PARSE_SPECIAL, "messages");
}

std::shared_ptr<const Tokens> checked(const gen_model* model, Tokens ids,
                                      const std::string& param) {
  const gen_model_config* config = gen_model_get_config(model);
  const auto most = static_cast<size_t>(gen_model_config_max_seq_len(config));
  const int32_t vocabulary = gen_model_config_vocab_size(config);
  if (ids.empty()) throw bad_request(param, "'" + param + "' gives no token");
  if (ids.size() >= most) {
    throw bad_request(param,
                      "'" + param + "' has " + std::to_string(ids.size()) +
                          " tokens, and the context of " + std::to_string(most) +
                          " must have room for one more",
                      "context_length_exceeded");
  }
  for (const int32_t id : ids) {
    if (id >= vocabulary) {
      throw bad_request(param, "token " + std::to_string(id) + " is outside the vocabulary of " +
                                   std::to_string(vocabulary));
    }
  }
  return std::make_shared<const Tokens>(std::move(ids));
}

}  // namespace

std::vector<std::shared_ptr<const Tokens>> encode_prompts(const gen_model* model,
                                                          const Request& request) {
  if (request.chat) return {checked(model, encode_chat(model, request), "messages")};
  std::vector<std::shared_ptr<const Tokens>> out;
  for (const Prompt& prompt : request.prompts) {
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      out.push_back(checked(model, encode(model, *text, GEN_ENCODE_ADD_BOS, "prompt"), "prompt"));
    } else {
      out.push_back(checked(model, std::get<Tokens>(prompt), "prompt"));
    }
  }
  return out;
}

cli::Sampling make_sampling(const gen_model* model, const Request& request, size_t index,
                            uint64_t seed, gen_cancel* cancel) {
  auto sampling = cli::make<cli::Sampling>(gen_sampling_new);
  gen_sampling* s = sampling.get();
  gen_error error;
  check(gen_sampling_set_max_new_tokens(s, request.max_tokens, &error), error, "max_tokens");
  check(gen_sampling_set_seed(s, request.seed.value_or(seed) + index, &error), error, "seed");
  check(gen_sampling_set_logprobs(s, request.logprobs, &error), error, "logprobs");
  check(gen_sampling_set_cancel(s, cancel, &error), error, {});
  for (const Setting& setting : request.settings) {
    check(gen_sampling_set(s, setting.key.c_str(), setting.value.c_str(), &error), error,
          setting.key);
  }
  for (const std::string& text : request.stop) {
    check(gen_sampling_add_stop_string(s, text.data(), text.size(), &error), error, "stop");
  }
  const int32_t vocabulary = gen_model_config_vocab_size(gen_model_get_config(model));
  for (const auto& [token, bias] : request.logit_bias) {
    if (token >= vocabulary) {
      throw bad_request("logit_bias", "token " + std::to_string(token) +
                                          " is outside the vocabulary of " +
                                          std::to_string(vocabulary));
    }
    check(gen_sampling_set_logit_bias(s, token, bias, &error), error, "logit_bias");
  }
  return sampling;
}

std::vector<std::string> sampling_keys() {
  // Those that the API has under another name or in another form.
  static constexpr const char* kOthers[] = {"max_new_tokens", "seed",       "logprobs",
                                            "stop_string",    "stop_token", "logit_bias"};
  const auto sampling = cli::make<cli::Sampling>(gen_sampling_new);
  const std::string text = cli::text_of([&](char* buf, size_t capacity, size_t* n, gen_error* e) {
    return gen_sampling_describe(sampling.get(), buf, capacity, n, e);
  });
  std::vector<std::string> keys;
  for (const auto& row : nlohmann::json::parse(text)) {
    const auto key = row.at("key").get<std::string>();
    const std::string type = row.value("type", "");
    const bool plain = type == "int" || type == "double" || type == "float" || type == "bool";
    if (plain && std::find(std::begin(kOthers), std::end(kOthers), key) == std::end(kOthers)) {
      keys.push_back(key);
    }
  }
  return keys;
}

std::string token_bytes(const gen_model* model, int32_t id) {
  char bytes[256];
  size_t n = 0;
  const gen_status status =
      gen_tokenizer_piece(gen_model_tokenizer(model), id, bytes, sizeof bytes, &n, nullptr);
  return status == GEN_OK ? std::string(bytes, n) : std::string();
}

ApiError library_error(gen_status status, const std::string& message, const std::string& param) {
  switch (status) {
    case GEN_ERROR_CONTEXT_FULL:
      return bad_request(param, message, "context_length_exceeded");
    case GEN_ERROR_INVALID_ARGUMENT:
    case GEN_ERROR_OUT_OF_RANGE:
    case GEN_ERROR_TOKENIZER:
    case GEN_ERROR_UNSUPPORTED:
    case GEN_ERROR_GRAMMAR:
      return bad_request(param, message);
    case GEN_ERROR_POOL_EXHAUSTED:
    case GEN_ERROR_CACHE_FULL:
    case GEN_ERROR_OUT_OF_MEMORY:
    case GEN_ERROR_BUSY:
      return server_error(503, message, "overloaded");
    case GEN_ERROR_CANCELLED:
      return server_error(503, "the server is shutting down", "shutting_down");
    default:
      return server_error(500, message);
  }
}

}  // namespace server
