// SPDX-License-Identifier: Apache-2.0
// What a request asks of sampling, as plain data. A generating call copies it on entry, so one
// object may serve many calls. set() checks what it stores against one table of ranges, param_rows();
// the fields may be filled by hand too, out-of-range values then read as the nearest "off" value.
// Read next: chain.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"

namespace gen::sampling {

constexpr int32_t kDefaultMaxNewTokens = 256;
constexpr int32_t kMaxLogprobs = 100;
constexpr double kMaxFlatPenalty = 100.0;  // of frequency and presence, either sign

/// Added to a token's logit before anything else; -inf bans the token.
struct LogitBias {
  int32_t token = 0;
  float bias = 0.0F;
};

struct SamplingParams {
  double temperature = 1.0;         // <= 0: greedy
  int32_t top_k = 0;                // 0 or >= vocabulary: off
  double typical_p = 1.0;           // <= 0 or >= 1: off
  double top_p = 1.0;               // <= 0 or >= 1: off
  double min_p = 0.0;               // 0: off
  double repetition_penalty = 1.0;  // <= 0 or 1: off
  bool compound_penalty = false;    // repetition_penalty once per occurrence, not once per token
  double frequency_penalty = 0.0;   // subtracted for each occurrence
  double presence_penalty = 0.0;    // subtracted once
  bool penalize_prompt = false;     // all tokens of the session count, not those of this call only
  int32_t penalty_window = 0;       // last tokens that count for the penalties, 0: all
  int32_t max_new_tokens = kDefaultMaxNewTokens;  // <= 0: the default
  uint64_t seed = 0;
  int32_t logprobs = -1;              // alternatives reported beside each chosen token's; < 0: none
  bool ignore_eos = false;            // the tokenizer's end tokens do not stop
  std::vector<LogitBias> logit_bias;  // ascending by token, one entry per token
  std::vector<int32_t> stop_tokens;
  std::vector<std::string> stop_strings;     // empty ones are ignored
  std::shared_ptr<const CancelFlag> cancel;  // stops the call when raised; may be null

  /// Sets a field that has a row in param_rows(), which says what it may be. kInvalidArgument naming
  /// the value and the range; then nothing has changed, here and below.
  template <typename T>
  Status set(T SamplingParams::*field, T value);
  /// `token` >= 0, `bias` finite or -inf; replaces a former bias of the token, 0 removes it.
  Status set_logit_bias(int32_t token, float bias);
  Status add_stop_token(int32_t token);  // >= 0; twice is once
  /// Must be UTF-8, since text that is not never comes out.
  Status add_stop_string(std::string_view text);

  /// kOutOfRange for a stop token or a bias outside the vocabulary. Called when a request begins.
  [[nodiscard]] Status check_vocab(int32_t vocab_size) const;
  [[nodiscard]] int32_t effective_max_new_tokens() const noexcept {
    return max_new_tokens > 0 ? max_new_tokens : kDefaultMaxNewTokens;
  }
};

/// A number or a switch of SamplingParams: what it is called and what it may be.
struct ParamRow {
  using Field = std::variant<double SamplingParams::*, int32_t SamplingParams::*,
                             uint64_t SamplingParams::*, bool SamplingParams::*>;
  const char* key;
  Field field;
  double least;      // both are allowed; infinite: any finite number of the type
  double most;       // not used for switches and 64 bits, which may be anything
  const char* off;   // values that do nothing, for people; empty where there is none
  const char* help;  // one phrase
};

/// All of them, in the order of SamplingParams.
std::span<const ParamRow> param_rows() noexcept;

}  // namespace gen::sampling
