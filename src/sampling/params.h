// SPDX-License-Identifier: Apache-2.0
// The parameters of a chain, as plain data; values outside a stage's range count as the nearest
// "off" value. The other parameters of a generating call, and the table of ranges, names and help
// of these fields, are in generate/request/call_params.h. Read next: chain.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace gen::sampling {

constexpr int32_t kMaxLogprobs = 100;
constexpr double kMaxFlatPenalty = 100.0;  // of frequency and presence penalties, either sign
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
  double xtc_threshold = 0.1;       // above 0.5 nothing can be removed
  double mirostat_tau = 0.0;        // target surprise in bits, 0: off
  double mirostat_eta = 0.1;        // learning rate
  double repetition_penalty = 1.0;  // <= 0 or 1: off
  bool compound_penalty = false;    // repetition_penalty once per occurrence, not once per token
  double frequency_penalty = 0.0;   // subtracted for each occurrence
  double presence_penalty = 0.0;    // subtracted once
  bool penalize_prompt = false;     // count all tokens of the session, not only those of this call
  int32_t penalty_window = 0;       // number of last tokens that count for the penalties, 0: all
  double dry_multiplier = 0.0;      // 0: off
  double dry_base = 1.75;
  int32_t dry_allowed_length = 2;  // longest repetition without a penalty
  int32_t dry_window = 0;          // number of last tokens that DRY searches, 0: all
  uint64_t seed = 0;
  bool gumbel = false;                // draws with independent noise per token: gumbel.h
  int32_t logprobs = -1;              // number of alternatives reported with each chosen token; <
                                      // 0: none
  std::vector<LogitBias> logit_bias;  // ascending by token, one entry per token

  /// `token` >= 0, `bias` finite or -inf; replaces a former bias of the token, 0 removes it.
  /// kInvalidArgument naming the value, and nothing has changed.
  Status set_logit_bias(int32_t token, float bias);

  /// kOutOfRange for a bias outside the vocabulary.
  [[nodiscard]] Status check_vocab(int32_t vocab_size) const;
};

}  // namespace gen::sampling
