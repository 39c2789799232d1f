// SPDX-License-Identifier: Apache-2.0
// The order of the stages. See chain.h.
#include "sampling/chain.h"

#include <algorithm>
#include <limits>

#include "base/rng.h"
#include "sampling/barred.h"
#include "sampling/draw.h"
#include "sampling/gumbel.h"
#include "sampling/temperature.h"
#include "sampling/top_n_sigma.h"
#include "sampling/top_p.h"
#include "sampling/typical_p.h"
#include "sampling/xtc.h"

namespace gen::sampling {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

bool cuts(double p) noexcept { return p > 0.0 && p < 1.0; }

}  // namespace

Result<Choice> Chain::sample(std::span<float> logits, std::span<const int32_t> said, uint64_t step,
                             int64_t row, const TokenMask* mask, const Further& further) {
  const Penalties penalties = Penalties::of(*params_);
  const bool edits =
      !params_->logit_bias.empty() || mask != nullptr || penalties.any() || further.any();
  const bool draws = params_->temperature > 0.0;
  const bool reports = params_->logprobs >= 0;
  if (mask == nullptr && !further.any() && only_best()) return greedy(logits, row);

  const size_t bad = peaks_.read(logits);
  GEN_TRY(check_read(logits, row, bad, peaks_.max()));
  // The sum costs more than all the rest, so it is left out where nobody asked for it.
  const double log_sum = reports ? log_sum_exp(logits, peaks_.max()) : 0.0;
  if (reports) top_logprobs(logits, log_sum, params_->logprobs, &scratch_, &top_);
  // Of the model's own logits, before anything is done to them.
  const bool by_sigma = draws && params_->top_n_sigma > 0.0;
  const double deviation = by_sigma ? logit_deviation(logits) : 0.0;
  edits_.clear();
  if (edits) GEN_TRY(edit(logits, said, penalties, row, mask, further));

  const float max = peaks_.max();
  Choice choice;
  if (draws) {
    cut(logits, max, deviation, step);
    choice.token = draw_one(step, further);
  } else {
    choice.token = static_cast<int32_t>(peaks_.first_index_of(logits, max));
  }
  if (!reports) return choice;
  const auto raw = std::find_if(edits_.begin(), edits_.end(),
                                [&](const LogitEdit& edit) { return edit.token == choice.token; });
  const float logit = raw != edits_.end() ? raw->before : logits[static_cast<size_t>(choice.token)];
  choice.logprob = static_cast<float>(static_cast<double>(logit) - log_sum);
  choice.top = top_;
  return choice;
}

// From candidates_.
int32_t Chain::draw_one(uint64_t step, const Further& further) {
  const uint64_t seed = params_->seed;
  int32_t token = 0;
  if (further.proposal != nullptr) {
    token =
        accept_or_draw(candidates_, *further.proposal, uniform_double(seed, kAcceptStream, step),
                       uniform_double(seed, kDrawStream, step));
  } else if (params_->gumbel) {
    token = draw_gumbel(candidates_, seed, step);
  } else {
    token = draw(candidates_, uniform_double(seed, further.draw_stream, step));
  }
  if (mirostat_.is_on()) mirostat_.drawn(token, candidates_);
  return token;
}

bool Chain::only_best() const noexcept {
  return params_->logit_bias.empty() && !Penalties::of(*params_).any() &&
         !(params_->temperature > 0.0) && params_->logprobs < 0;
}

Result<Choice> Chain::best(int32_t token, float logit, size_t n, int64_t row) {
  if (logit == kNothing) return all_impossible(row, n);
  Choice choice;
  choice.token = token;
  return choice;
}

bool Chain::short_row_will_do() const noexcept {
  return params_->temperature > 0.0 && params_->top_k > 0 && params_->top_k < kShortRow &&
         params_->logprobs < 0 && params_->logit_bias.empty() && !Penalties::of(*params_).any() &&
         !(params_->top_n_sigma > 0.0);
}

// All logits that are at least the k-th largest survive top-k, and those are in the row if its last
// is smaller.
bool Chain::decides(const ShortRow& row) const noexcept {
  const float last = row.logits.back();
  return last == kNothing || last < row.logits[static_cast<size_t>(params_->top_k) - 1];
}

Result<Choice> Chain::sample_short(const ShortRow& best, size_t n, uint64_t step, int64_t row,
                                   const Further& further) {
  const float max = best.logits.front();
  if (max == kNothing) return all_impossible(row, n);
  const float bar = best.logits[static_cast<size_t>(params_->top_k) - 1];
  candidates_.clear();
  for (size_t i = 0; i < best.logits.size(); ++i) {
    if (best.logits[i] < bar || best.logits[i] == kNothing) break;
    candidates_.push_back({best.tokens[i], best.logits[i]});
  }
  // Sums go by token, as in a whole row.
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
  cut_candidates(max, step);
  Choice choice;
  choice.token = draw_one(step, further);
  return choice;
}

// Keeps nothing, so that the commonest setting costs one pass and no memory.
Result<Choice> Chain::greedy(std::span<const float> logits, int64_t row) {
  float max = 0.0F;
  size_t bad = 0;
  const size_t token = argmax(logits, &max, &bad);
  GEN_TRY(check_read(logits, row, bad, max));
  Choice choice;
  choice.token = static_cast<int32_t>(token);
  return choice;
}

// Bias, mask, penalties and barred tokens.
Status Chain::edit(std::span<float> logits, std::span<const int32_t> said,
                   const Penalties& penalties, int64_t row, const TokenMask* mask,
                   const Further& further) {
  apply_bias(params_->logit_bias, logits, &edits_);
  if (mask != nullptr) apply_mask(*mask, logits);
  if (penalties.any()) {
    const auto counts = counter_.count(said, params_->penalty_window, logits.size());
    apply_penalties(counts, penalties, logits, &edits_);
  }
  subtract(further.penalties, logits, &edits_);
  if (mask != nullptr) {
    peaks_.read(logits);
  } else {
    for (const LogitEdit& edit : edits_) peaks_.touch(static_cast<size_t>(edit.token));
    peaks_.refresh(logits);
  }
  if (!further.barred.empty()) apply_barred(further.barred, logits, &peaks_, &edits_);
  if (peaks_.max() != kNothing) return {};
  if (mask != nullptr) {
    return error(Code::kGrammar, "row %lld: mask, bias and penalties leave no token possible",
                 static_cast<long long>(row));
  }
  return error(Code::kModel, "row %lld: bias and penalties leave no token possible",
               static_cast<long long>(row));
}

// Top-n-sigma, temperature, top-k and the rest: leaves in candidates_ what may be drawn.
void Chain::cut(std::span<const float> logits, float max, double deviation, uint64_t step) {
  const double temperature = params_->temperature;
  const auto top_k = static_cast<size_t>(std::max(params_->top_k, 0));
  const double min_p = std::min(params_->min_p, 1.0);
  const bool by_mass = cuts(params_->typical_p) || cuts(params_->top_p);
  float bar = kNothing;
  if (top_k > 0 && top_k < logits.size()) bar = peaks_.kth_largest(logits, top_k, &scratch_);
  // What min-p will take out need not be weighed, if nothing before it asks for all the weight.
  if (min_p > 0.0 && !by_mass) bar = std::max(bar, min_p_bar(min_p, max, temperature));
  if (params_->top_n_sigma > 0.0) {
    bar = std::max(bar, top_n_sigma_bar(params_->top_n_sigma, deviation, max));
  }
  peaks_.collect(logits, bar, &candidates_);
  cut_candidates(max, step);
}

// Temperature and typical-p to mirostat.
void Chain::cut_candidates(float max, uint64_t step) {
  const double temperature = params_->temperature;
  const double min_p = std::min(params_->min_p, 1.0);
  weigh(max, temperature, candidates_);
  if (cuts(params_->typical_p)) {
    apply_typical_p(params_->typical_p, max, temperature, &candidates_, &border_);
  }
  if (cuts(params_->top_p)) apply_top_p(params_->top_p, &candidates_, &border_);
  if (min_p > 0.0) apply_min_p(min_p, &candidates_);
  if (params_->xtc_probability > 0.0 && params_->xtc_threshold >= 0.0 &&
      uniform_double(params_->seed, kXtcStream, step) < params_->xtc_probability) {
    apply_xtc(params_->xtc_threshold, &candidates_);
  }
  if (mirostat_.is_on()) mirostat_.cut(&candidates_);
}

}  // namespace gen::sampling
