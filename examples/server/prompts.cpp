// SPDX-License-Identifier: Apache-2.0
// See prompts.h.
#include "prompts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "openai/response.h"

namespace server {
namespace {

void check(gen_status status, const gen_error& error, const std::string& param) {
  if (status != GEN_OK) throw library_error(status, error.message, param);
}

ApiError too_long(const std::string& param, size_t n_tokens, size_t context) {
  return bad_request(param,
                     "'" + param + "' has " + std::to_string(n_tokens) +
                         " tokens, and the context of " + std::to_string(context) +
                         " must have room for one more",
                     "context_length_exceeded");
}

/// Longer texts are encoded one at a time, because encoding takes hundreds of bytes per byte of
/// text.
constexpr size_t kLongText = size_t{64} << 10U;

using Grammar = cli::Handle<gen_grammar, gen_grammar_free>;
using Cancel = cli::Handle<gen_cancel, gen_cancel_free>;
using GrammarOptions = cli::Handle<gen_grammar_options, gen_grammar_options_free>;

/// Grammars are untrusted: these limits are lower than the library's own.
constexpr std::pair<const char*, const char*> kGrammarLimits[] = {{"max_edges", "262144"},
                                                                  {"max_states", "10000"},
                                                                  {"max_items", "4096"},
                                                                  {"max_work", "1048576"},
                                                                  {"cache_memory", "4"}};
constexpr size_t kMaskBytes = size_t{4} << 20U;  // the value of "cache_memory"

/// Size of all texts that a chat's template gets.
size_t chat_bytes(const Request& request) {
  size_t n = 0;
  for (const Message& message : request.messages) n += message.bytes();
  for (const Setting& one : request.variables) n += one.key.size() + one.value.size();
  return n;
}

}  // namespace

Encoder::Encoder(const gen_model* model, std::string chat_template)
    : model_(model),
      chat_template_(std::move(chat_template)),
      context_(static_cast<size_t>(gen_model_config_max_seq_len(gen_model_get_config(model)))),
      longest_piece_(8) {
  const int32_t vocabulary = gen_tokenizer_vocab_size(gen_model_tokenizer(model));
  for (int32_t id = 0; id < vocabulary; ++id) {
    size_t n = 0;
    // No buffer: only the length is wanted.
    gen_tokenizer_piece(gen_model_tokenizer(model), id, nullptr, 0, &n, nullptr);
    longest_piece_ = std::max(longest_piece_, n);
  }
}

Tokens Encoder::encode(size_t n_bytes, const std::string& param, const Fill& fill) const {
  const bool is_long = n_bytes > kLongText;
  std::unique_lock turn(long_texts_, std::defer_lock);
  if (is_long) turn.lock();
  // One token more than fits is enough to see that the text does not fit.
  Tokens ids(context_ + 1);
  size_t n = 0;
  gen_error error;
  const gen_status status = fill(ids.data(), ids.size(), &n, &error);
  if (is_long) release_memory();
  if (status == GEN_ERROR_OUT_OF_RANGE && n > ids.size()) throw too_long(param, n, context_);
  check(status, error, param);
  ids.resize(n);
  return ids;
}

Tokens Encoder::encode_text(const std::string& text) const {
  return encode(text.size(), "prompt", [&](int32_t* ids, size_t capacity, size_t* n, gen_error* e) {
    return gen_tokenizer_encode(gen_model_tokenizer(model_), text.data(), text.size(),
                                GEN_ENCODE_ADD_BOS, ids, capacity, n, e);
  });
}

Tokens Encoder::encode_gap(const Gap& gap) const {
  const auto& prefix = gap.prefix;
  const auto& suffix = gap.suffix;
  return encode(prefix.size() + suffix.size(), "suffix",
                [&](int32_t* ids, size_t capacity, size_t* n, gen_error* e) {
                  return gen_tokenizer_encode_fim(gen_model_tokenizer(model_), prefix.data(),
                                                  prefix.size(), suffix.data(), suffix.size(),
                                                  GEN_ENCODE_ADD_BOS, ids, capacity, n, e);
                });
}

Tokens Encoder::encode_chat(const Request& request) const {
  auto chat = cli::make<cli::Chat>(gen_chat_new);
  gen_error error;
  check(gen_chat_set_template(chat.get(), chat_template_.data(), chat_template_.size(), &error),
        error, "messages");
  for (size_t i = 0; i < request.messages.size(); ++i) {
    const Message& message = request.messages[i];
    const std::string where = "messages[" + std::to_string(i) + "]";
    if (message.role == "tool") {
      check(gen_chat_add_tool_result(chat.get(), message.tool_call_id.c_str(), message.name.c_str(),
                                     message.content.data(), message.content.size(), &error),
            error, where + ".content");
      continue;
    }
    check(gen_chat_add(chat.get(), message.role.c_str(), message.content.data(),
                       message.content.size(), &error),
          error, where + ".content");
    check(gen_chat_set_name(chat.get(), message.name.c_str(), &error), error, where + ".name");
    check(gen_chat_set_reasoning(chat.get(), message.reasoning.data(), message.reasoning.size(),
                                 &error),
          error, where + ".reasoning_content");
    for (const ToolCall& call : message.tool_calls) {
      check(gen_chat_add_tool_call(chat.get(), call.id.c_str(), call.name.c_str(),
                                   call.arguments.data(), call.arguments.size(), &error),
            error, where + ".tool_calls");
    }
  }
  for (const Setting& one : request.variables) {
    check(gen_chat_set_variable(chat.get(), one.key.c_str(), one.value.data(), one.value.size(),
                                &error),
          error, "chat_template_kwargs");
  }
  return encode(chat_bytes(request), "messages",
                [&](int32_t* ids, size_t capacity, size_t* n, gen_error* e) {
                  return gen_chat_encode(model_, chat.get(), 1, ids, capacity, n, e);
                });
}

void Encoder::check_size(size_t n_bytes, const std::string& param) const {
  if (n_bytes / longest_piece_ <= context_) return;
  throw bad_request(param,
                    "'" + param + "' has " + std::to_string(n_bytes) +
                        " bytes, and no token of the model has more than " +
                        std::to_string(longest_piece_) + ": it cannot fit the context of " +
                        std::to_string(context_),
                    "context_length_exceeded");
}

std::shared_ptr<const Tokens> Encoder::checked(Tokens ids, const std::string& param) const {
  const int32_t vocabulary = gen_model_config_vocab_size(gen_model_get_config(model_));
  if (ids.empty()) throw bad_request(param, "'" + param + "' has no tokens");
  if (ids.size() >= context_) throw too_long(param, ids.size(), context_);
  for (const int32_t id : ids) {
    if (id >= vocabulary) {
      throw bad_request(param, "token " + std::to_string(id) + " is outside the vocabulary of " +
                                   std::to_string(vocabulary));
    }
  }
  return std::make_shared<const Tokens>(std::move(ids));
}

std::vector<std::shared_ptr<const Tokens>> Encoder::prompts(const Request& request) const {
  if (request.chat) {
    check_size(chat_bytes(request), "messages");
    return {checked(encode_chat(request), "messages")};
  }
  std::vector<std::shared_ptr<const Tokens>> out;
  for (const Prompt& prompt : request.prompts) {
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      check_size(text->size(), "prompt");
      out.push_back(checked(encode_text(*text), "prompt"));
    } else if (const auto* gap = std::get_if<Gap>(&prompt)) {
      check_size(gap->prefix.size() + gap->suffix.size(), "prompt");
      out.push_back(checked(encode_gap(*gap), "prompt"));
    } else {
      out.push_back(checked(std::get<Tokens>(prompt), "prompt"));
    }
  }
  return out;
}

size_t Encoder::text_size(const Prompt& prompt) const {
  if (const auto* text = std::get_if<std::string>(&prompt)) return characters(*text);
  if (const auto* gap = std::get_if<Gap>(&prompt)) return characters(gap->prefix);
  const auto& ids = std::get<Tokens>(prompt);
  return characters(cli::text_of([&](char* buf, size_t capacity, size_t* n, gen_error* e) {
    return gen_tokenizer_decode(gen_model_tokenizer(model_), ids.data(), ids.size(), buf, capacity,
                                n, e);
  }));
}

Languages::Make language_maker(const gen_model* model) {
  return [model](const Language& language, std::stop_token stop) -> Languages::Made {
    const auto& [field, text, chosen] = language;
    const auto cancel = cli::make<Cancel>(gen_cancel_new);
    const std::stop_callback on_stop(stop, [&] { gen_cancel_fire(cancel.get()); });
    const auto options = cli::make<GrammarOptions>(gen_grammar_options_new);
    gen_error error;
    check(gen_grammar_options_set_cancel(options.get(), cancel.get(), &error), error, field);
    for (const auto& [key, value] : kGrammarLimits) {
      check(gen_grammar_options_set(options.get(), key, value, &error), error, field);
    }
    for (const Setting& one : chosen) {
      check(gen_grammar_options_set(options.get(), one.key.c_str(), one.value.c_str(), &error),
            error, one.key);
    }
    const auto from = field == "regex"             ? gen_grammar_from_regex
                      : field == "lark"            ? gen_grammar_from_lark
                      : field == "tags"            ? gen_grammar_from_tags
                      : field == "response_format" ? gen_grammar_from_json_schema
                                                   : gen_grammar_from_gbnf;
    gen_grammar* made = nullptr;
    check(from(text.data(), text.size(), options.get(), &made, &error), error, field);
    const Grammar grammar(made);
    gen_grammar_matcher* start = nullptr;
    check(gen_grammar_matcher_new(grammar.get(), gen_model_tokenizer(model), &start, &error), error,
          field);
    Matcher matcher(start);
    const std::string about = cli::text_of([&](char* buf, size_t n_buf, size_t* n, gen_error* e) {
      return gen_grammar_describe(grammar.get(), buf, n_buf, n, e);
    });
    const size_t bytes = nlohmann::json::parse(about).at("bytes");
    return std::make_shared<const Automaton>(std::move(matcher), bytes + kMaskBytes);
  };
}

cli::Sampling make_sampling(const gen_model* model, const Request& request, size_t index,
                            uint64_t seed, gen_cancel* cancel, const gen_grammar_matcher* matcher) {
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
  for (const AdapterUse& use : request.adapters) {
    check(gen_sampling_add_adapter(s, use.name.c_str(), use.scale, &error), error, "lora");
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
  check(gen_sampling_set_grammar_matcher(s, matcher, &error), error, {});
  return sampling;
}

std::vector<std::string> sampling_keys() {
  // Settings that the API has under another name or in another form.
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
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model);
  size_t n = 0;
  gen_tokenizer_piece(tokenizer, id, nullptr, 0, &n, nullptr);
  std::string bytes(n + 1, '\0');
  const gen_status status =
      gen_tokenizer_piece(tokenizer, id, bytes.data(), bytes.size(), &n, nullptr);
  bytes.resize(status == GEN_OK ? n : 0);
  return bytes;
}

size_t token_characters(const gen_model* model, int32_t id) {
  // Twice, because some tokenizers drop a space at the beginning of a text.
  const int32_t twice[] = {id, id};
  size_t n = 0;
  gen_tokenizer_decode(gen_model_tokenizer(model), twice, 2, nullptr, 0, &n, nullptr);
  return n == 0 ? 0 : characters(token_bytes(model, id));
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
