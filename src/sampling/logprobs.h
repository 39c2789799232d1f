// SPDX-License-Identifier: Apache-2.0
// Log-probabilities as reported to the user: log-softmax of the raw logits, before any bias,
// penalty or temperature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace gen::sampling {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0F;
};

/// log(sum_i exp(logits[i])); `max` is the largest of them and finite.
double log_sum_exp(std::span<const float> logits, float max) noexcept;
/// The same where the sum of exp(logits[i] - max) is known, in the order of base/mass.h.
double log_sum_exp(float max, double mass) noexcept;

/// Log-softmax of one token of a row. kModel, naming row and token, for NaN, +inf or a row of -inf.
Result<float> token_logprob(std::span<const float> logits, size_t token, int64_t row);

/// Checks a row: kModel, naming row and token, for NaN, +inf or a row of only -inf. `bad` is the
/// first index of a NaN or +inf, logits.size() if there is none, and `max` then the largest logit.
Status check_read(std::span<const float> logits, int64_t row, size_t bad, float max);

/// The failure of a row of `n` logits that are all -inf.
Status all_impossible(int64_t row, size_t n);

/// The `count` most probable tokens, best first, ties by lower id, capped by the vocabulary.
/// `scratch` saves allocations from call to call.
void top_logprobs(std::span<const float> logits, double log_sum, int32_t count,
                  std::vector<float>* scratch, std::vector<TokenLogprob>* out);

}  // namespace gen::sampling
