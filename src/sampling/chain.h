// SPDX-License-Identifier: Apache-2.0
// Chain: from a row of logits to a token, in the fixed order bias, penalties, greedy?, temperature,
// top-k, top-p, min-p, draw; each stage is a file of this room. The result depends on the logits,
// the parameters, the tokens generated so far, the seed and the step only: not on the machine, the
// standard library, threads or batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "sampling/candidates.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"
#include "sampling/penalties.h"

namespace gen::sampling {

/// A sampled token. `top` is valid until the next sample(); it and `logprob` are there if the
/// parameters ask for log-probabilities.
struct Choice {
  int32_t token = -1;
  float logprob = 0.0F;  // log-softmax of the raw logits, else 0
  std::span<const TokenLogprob> top;
};

/// Owns the scratch of one request, so that sampling allocates nothing once warm.
/// Threads: one at a time.
class Chain {
 public:
  /// `params` must outlive the chain and have passed check_vocab.
  explicit Chain(const SamplingParams& params) : params_(&params) {}

  /// Samples from `logits`, [V], which are overwritten. `generated` are the tokens of this call so
  /// far and `step` their number; `row` is only named in errors. kModel, naming row and token, for
  /// a logit that is NaN or +inf, and when no token is possible because all are -inf.
  Result<Choice> sample(std::span<float> logits, std::span<const int32_t> generated, uint64_t step,
                        int64_t row);

 private:
  const SamplingParams* params_;
  std::vector<Candidate> candidates_;
  std::vector<LogitEdit> edits_;
  std::vector<uint32_t> seen_;
  uint32_t seen_epoch_ = 0;
  std::vector<float> scratch_;
  std::vector<TokenLogprob> top_;
};

}  // namespace gen::sampling
