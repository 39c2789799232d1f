// SPDX-License-Identifier: Apache-2.0
// From a request to the library's arguments: token ids and sampling settings. An error of the
// library becomes an ApiError that names the request's field.
#pragma once

#include <generate/generate.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../cli/handles.h"
#include "languages.h"
#include "openai/api_error.h"
#include "openai/request.h"

namespace server {

using Tokens = std::vector<int32_t>;

/// Turns the prompts of requests into token ids. Threads: any.
class Encoder {
 public:
  /// Scans the model's vocabulary. `chat_template` as gen_chat_set_template takes it, empty for the
  /// model's own.
  Encoder(const gen_model* model, std::string chat_template);

  const gen_model* model() const { return model_; }
  /// The prompts of a completion, or that of a chat. Each leaves room for one more token in the
  /// model's context; a text that cannot fit is refused by its size, before any work is done for
  /// it.
  std::vector<std::shared_ptr<const Tokens>> prompts(const Request& request) const;
  /// Characters of a prompt's text, the offset of a completion's text.
  size_t text_size(const Prompt& prompt) const;

 private:
  using Fill = std::function<gen_status(int32_t* ids, size_t capacity, size_t* n, gen_error* e)>;
  /// The tokens that `fill` writes for a text; long texts take turns.
  Tokens encode(size_t n_bytes, const std::string& param, const Fill& fill) const;
  Tokens encode_text(const std::string& text) const;
  Tokens encode_gap(const Gap& gap) const;
  Tokens encode_chat(const Request& request) const;
  void check_size(size_t n_bytes, const std::string& param) const;
  std::shared_ptr<const Tokens> checked(Tokens ids, const std::string& param) const;

  const gen_model* const model_;
  const std::string chat_template_;
  const size_t context_;
  size_t longest_piece_;  // maximum bytes of text per token
  mutable std::mutex long_texts_;
};

/// Compiles languages for the model's tokens.
Languages::Make language_maker(const gen_model* model);

/// Settings for answer `index` of a prompt; `seed` applies if the request has none.
cli::Sampling make_sampling(const gen_model* model, const Request& request, size_t index,
                            uint64_t seed, gen_cancel* cancel, const gen_grammar_matcher* matcher);

/// Keys of gen_sampling_set that a request may use under their own names.
std::vector<std::string> sampling_keys();

/// The bytes of a token, or the name of one that adds nothing to a text; empty if there is no such
/// id.
std::string token_bytes(const gen_model* model, int32_t id);
/// Number of characters that begin in a token's bytes.
size_t token_characters(const gen_model* model, int32_t id);

/// The HTTP error for a failure of the library.
ApiError library_error(gen_status status, const std::string& message, const std::string& param);

}  // namespace server
