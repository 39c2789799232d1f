// SPDX-License-Identifier: Apache-2.0
// Answers in the formats of the OpenAI API: whole ones, chunks of streams, the list of models.
// Knows nothing of HTTP and of the library.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server {

/// Characters that begin in `bytes`.
size_t characters(std::string_view bytes);

/// A token's bytes, which need not be whole characters, with its log-probability.
struct ScoredPiece {
  int32_t id = -1;
  std::string bytes;
  float logprob = 0;
};

/// A token of an answer with the most probable tokens at its position.
struct ScoredToken {
  ScoredPiece piece;
  std::vector<ScoredPiece> top;  // best first; `piece` need not be among them
  size_t offset = 0;             // characters of the prompt and the answer before it
};

/// One answer, or a part of it.
struct Choice {
  size_t index = 0;
  std::string text;
  const char* finish_reason = nullptr;  // as named in the API; null before the end
  std::vector<ScoredToken> tokens;      // if log-probabilities were asked for
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;     // of the prompts, found in the prefix cache
  int64_t evaluated_tokens = 0;  // tokens that ran before the first one was drawn
  int64_t drafted_tokens = 0;    // draft tokens
  int64_t accepted_tokens = 0;   // of these, accepted
};

/// What all parts of one answer have in common.
struct Heading {
  std::string id;
  std::string model;
  int64_t created = 0;  // seconds since 1970
  bool chat = false;
  bool logprobs = false;  // show those of choices
  bool usage = false;     // a stream's last chunk has it
};

/// The body of an answer that is not streamed.
nlohmann::ordered_json answer_json(const Heading& heading, const std::vector<Choice>& choices,
                                   const Usage& usage);

/// The first chunk of a choice in a chat: it names the role.
nlohmann::ordered_json role_chunk(const Heading& heading, size_t index);
/// A piece of text, with the log-probabilities of its tokens.
nlohmann::ordered_json text_chunk(const Heading& heading, const Choice& piece);
/// The end of a choice, with the log-probabilities of tokens without text.
nlohmann::ordered_json end_chunk(const Heading& heading, const Choice& choice);
/// The last chunk, if usage was asked for.
nlohmann::ordered_json usage_chunk(const Heading& heading, const Usage& usage);

/// One server-sent event. Invalid UTF-8 is replaced.
std::string event(const nlohmann::ordered_json& data);
/// The event that ends a stream.
std::string_view end_of_events();
/// A body, with the same replacement.
std::string dump(const nlohmann::ordered_json& data);

/// The model, or one of its adapters, whose "parent" is the model.
nlohmann::ordered_json model_json(const std::string& name, const std::string& model,
                                  int64_t created);
nlohmann::ordered_json models_json(const std::string& model,
                                   const std::vector<std::string>& adapters, int64_t created);
/// [{"id","name","scale"}], in the form of llama.cpp's server. The scale is that of a request that
/// does not name the adapter.
nlohmann::ordered_json adapters_json(const std::vector<std::string>& adapters);

}  // namespace server
