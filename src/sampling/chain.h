// SPDX-License-Identifier: Apache-2.0
// Chain: from a row of logits to a token, in the fixed order bias, mask, penalties, greedy?,
// temperature, top-k, typical-p, top-p, min-p, draw; each stage is a file of this room. The result
// depends on the logits, the parameters, the mask, the tokens said so far, the seed and the step
// only: not on the machine, the standard library, threads or batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "sampling/candidates.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"
#include "sampling/penalties.h"
#include "sampling/row_peaks.h"
#include "sampling/token_mask.h"

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

  /// Samples from `logits`, [V], which are overwritten. `said` are the tokens that penalties count,
  /// in order: those of this call so far, after the session's if the parameters want that. `step`
  /// is the number of tokens drawn before; `row` is only named in errors; `mask` may be null.
  /// kModel, naming row and token, for a logit that is NaN or +inf, and when no token is possible
  /// because all are -inf; kGrammar if there was a mask and it or what came with it left none.
  Result<Choice> sample(std::span<float> logits, std::span<const int32_t> said, uint64_t step,
                        int64_t row, const TokenMask* mask = nullptr);

  /// Whether sample() without a mask looks for nothing but the largest logit of a row: who has
  /// found that elsewhere may take best() for it.
  [[nodiscard]] bool only_best() const noexcept;
  /// The choice that a row of `n` logits gives whose largest is `logit`, first at `token`, and none
  /// of which is NaN or +inf. Errors: as sample.
  static Result<Choice> best(int32_t token, float logit, size_t n, int64_t row);

 private:
  static Result<Choice> greedy(std::span<const float> logits, int64_t row);
  Status edit(std::span<float> logits, std::span<const int32_t> said, const Penalties& penalties,
              int64_t row, const TokenMask* mask);
  void cut(std::span<const float> logits, float max);

  const SamplingParams* params_;
  RowPeaks peaks_;
  TokenCounter counter_;
  std::vector<LogitEdit> edits_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> border_;
  std::vector<float> scratch_;
  std::vector<TokenLogprob> top_;
};

}  // namespace gen::sampling
