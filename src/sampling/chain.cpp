// SPDX-License-Identifier: Apache-2.0
// The order of the stages. See chain.h.
#include "sampling/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "sampling/draw.h"
#include "sampling/selection.h"
#include "sampling/temperature.h"
#include "sampling/top_p.h"

namespace gen::sampling {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

}  // namespace

Result<Choice> Chain::sample(std::span<float> logits, std::span<const int32_t> generated,
                             uint64_t step, int64_t row) {
  float max = 0.0F;
  GEN_TRY(check_row(logits, row, &max));
  // The sum costs more than a greedy choice, so it is left out where nobody asked for it.
  const bool reports = params_->logprobs >= 0;
  const double log_sum = reports ? log_sum_exp(logits, max) : 0.0;
  if (reports) top_logprobs(logits, log_sum, params_->logprobs, &scratch_, &top_);

  edits_.clear();
  apply_bias(params_->logit_bias, logits, &edits_);
  const double penalty = params_->repetition_penalty;
  if (penalty > 0.0 && penalty != 1.0 && std::isfinite(penalty)) {
    apply_repetition_penalty(generated, penalty, params_->penalty_window, logits, &seen_,
                             &seen_epoch_, &edits_);
  }
  if (!edits_.empty()) {
    max = row_max(logits);
    if (max == kNothing) {
      return error(Code::kModel, "row %lld: bias and penalties leave no token possible",
                   static_cast<long long>(row));
    }
  }

  Choice choice;
  if (!(params_->temperature > 0.0)) {
    choice.token = static_cast<int32_t>(first_index_of(logits, max));
  } else {
    const auto top_k = static_cast<size_t>(std::max(params_->top_k, 0));
    const float bar =
        top_k > 0 && top_k < logits.size() ? kth_largest(logits, top_k, &scratch_) : kNothing;
    weigh(logits, max, params_->temperature, bar, &candidates_);
    if (params_->top_p > 0.0 && params_->top_p < 1.0) apply_top_p(params_->top_p, &candidates_);
    if (params_->min_p > 0.0) apply_min_p(std::min(params_->min_p, 1.0), &candidates_);
    choice.token = draw(candidates_, uniform_double(params_->seed, 0, step));
  }

  if (!reports) return choice;
  const auto raw = std::find_if(edits_.begin(), edits_.end(),
                                [&](const LogitEdit& edit) { return edit.token == choice.token; });
  const float logit = raw != edits_.end() ? raw->before : logits[static_cast<size_t>(choice.token)];
  choice.logprob = static_cast<float>(static_cast<double>(logit) - log_sum);
  choice.top = top_;
  return choice;
}

}  // namespace gen::sampling
