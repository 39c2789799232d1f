// SPDX-License-Identifier: Apache-2.0
// Log-probabilities as reported to the user: log-softmax of the raw logits, before any bias,
// penalty or temperature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gen::sampling {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0F;
};

/// log(sum_i exp(logits[i])); `max` is the largest of them and finite.
double log_sum_exp(std::span<const float> logits, float max) noexcept;

/// The `count` most probable tokens, best first, ties by lower id, capped by the vocabulary.
/// `scratch` saves allocations from call to call.
void top_logprobs(std::span<const float> logits, double log_sum, int32_t count,
                  std::vector<float>* scratch, std::vector<TokenLogprob>* out);

}  // namespace gen::sampling
