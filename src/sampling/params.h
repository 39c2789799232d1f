// SPDX-License-Identifier: Apache-2.0
// What a chain reads, as plain data; values outside of what a stage knows read as the nearest "off"
// value. What else a generating call is asked, and the table of ranges, names and help of these
// fields, is in generate/request/call_params.h. Read next: chain.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace gen::sampling {

constexpr int32_t kMaxLogprobs = 100;
constexpr double kMaxFlatPenalty = 100.0;  // of frequency and presence, either sign
constexpr double kMaxDryMultiplier = 100.0;
constexpr double kMaxDryBase = 100.0;
constexpr double kMaxMirostatTau = 100.0;  // bits; no vocabulary has tokens of more than 31

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
  double top_n_sigma = 0.0;         // <= 0: off
  double xtc_probability = 0.0;     // 0: off
  double xtc_threshold = 0.1;       // above 0.5 there is nothing to take out
  double mirostat_tau = 0.0;        // wanted surprise in bits, 0: off
  double mirostat_eta = 0.1;        // how fast it is learned
  double repetition_penalty = 1.0;  // <= 0 or 1: off
  bool compound_penalty = false;    // repetition_penalty once per occurrence, not once per token
  double frequency_penalty = 0.0;   // subtracted for each occurrence
  double presence_penalty = 0.0;    // subtracted once
  bool penalize_prompt = false;     // all tokens of the session count, not those of this call only
  int32_t penalty_window = 0;       // last tokens that count for the penalties, 0: all
  double dry_multiplier = 0.0;      // 0: off
  double dry_base = 1.75;
  int32_t dry_allowed_length = 2;  // longest repetition without a penalty
  int32_t dry_window = 0;          // last tokens that DRY looks at, 0: all
  uint64_t seed = 0;
  bool gumbel = false;                // draws with noise of each token: gumbel.h
  int32_t logprobs = -1;              // alternatives reported beside each chosen token's; < 0: none
  std::vector<LogitBias> logit_bias;  // ascending by token, one entry per token

  /// `token` >= 0, `bias` finite or -inf; replaces a former bias of the token, 0 removes it.
  /// kInvalidArgument naming the value, and nothing has changed.
  Status set_logit_bias(int32_t token, float bias);

  /// kOutOfRange for a bias outside the vocabulary.
  [[nodiscard]] Status check_vocab(int32_t vocab_size) const;
};

}  // namespace gen::sampling
