// SPDX-License-Identifier: Apache-2.0
// The order of the stages. See chain.h.
#include "sampling/chain.h"

#include <algorithm>
#include <limits>

#include "base/mass.h"
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

/// Min-p can filter by the largest logit alone: no stage before it needs the total weight.
bool min_p_bars(const SamplingParams& params) noexcept {
  return params.min_p > 0.0 && !cuts(params.typical_p) && !cuts(params.top_p);
}

/// Whether top-p filters the whole row.
bool mass_cuts(const SamplingParams& params) noexcept {
  return params.top_k <= 0 && !cuts(params.typical_p) && cuts(params.top_p);
}

}  // namespace

Result<Choice> Chain::sample(std::span<float> logits, std::span<const int32_t> said, uint64_t step,
                             int64_t row, const TokenMask* mask, const Further& further) {
  const Penalties penalties = Penalties::of(*params_);
  const bool edited = edits() || mask != nullptr || further.any();
  const bool draws = params_->temperature > 0.0;
  const bool reports = params_->logprobs >= 0;
  if (mask == nullptr && !further.any() && only_best()) return greedy(logits, row);

  const size_t bad = peaks_.read(logits);
  GEN_TRY(check_read(logits, row, bad, peaks_.max()));
  // The sum costs more than everything else, so it is omitted unless asked for.
  const double log_sum = reports ? log_sum_exp(logits, peaks_.max()) : 0.0;
  if (reports) top_logprobs(logits, log_sum, params_->logprobs, &scratch_, &top_);
  // Of the model's own logits, before any edit.
  const bool by_sigma = draws && params_->top_n_sigma > 0.0;
  const double deviation = by_sigma ? logit_deviation(logits) : 0.0;
  edits_.clear();
  if (edited) GEN_TRY(edit(logits, said, penalties, row, mask, further));

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
  return !edits() && !(params_->temperature > 0.0) && params_->logprobs < 0;
}

// Mass is that of the edited logits, and log-probabilities are those of the model's own.
ShortRowNeed Chain::short_row(bool edited, bool masked) const noexcept {
  const bool reports = params_->logprobs >= 0;
  const bool draws = params_->temperature > 0.0;
  if (reports && (edited || masked)) return {};
  if (draws && params_->top_n_sigma > 0.0) return {};
  ShortRowNeed need;
  need.k = draws || params_->logprobs > 1 ? kShortRow : 1;
  const bool by_k = params_->top_k > 0 && params_->top_k < kShortRow;
  if (draws && !by_k && !min_p_bars(*params_)) {
    const bool from_all = draws_from_all();
    if (edited || !(from_all || mass_cuts(*params_))) return {};
    need.temperature = params_->temperature;
    need.slice = from_all;
    if (from_all && params_->logprobs <= 1) need.k = 1;
  }
  if (reports) {
    if (need.temperature > 0.0 && need.temperature != 1.0) return {};
    need.temperature = 1.0;
  }
  return need;
}

// Whether no stage filters tokens before the draw.
bool Chain::draws_from_all() const noexcept {
  const SamplingParams& params = *params_;
  return params.temperature > 0.0 && params.top_k <= 0 && !cuts(params.typical_p) &&
         !cuts(params.top_p) && !(params.min_p > 0.0) && !(params.top_n_sigma > 0.0) &&
         !(params.xtc_probability > 0.0) && !params.gumbel && !mirostat_.is_on();
}

double Chain::draw_place(uint64_t step) const noexcept {
  return uniform_double(params_->seed, kDrawStream, step);
}

bool Chain::edits() const noexcept {
  return !params_->logit_bias.empty() || Penalties::of(*params_).any();
}

void Chain::list_edited(std::span<const int32_t> said, size_t vocab, const Further& further,
                        std::vector<int32_t>* tokens) {
  tokens->clear();
  for (const LogitBias& entry : params_->logit_bias) tokens->push_back(entry.token);
  if (Penalties::of(*params_).any()) {
    for (const TokenCount& entry : counter_.count(said, params_->penalty_window, vocab)) {
      tokens->push_back(entry.token);
    }
  }
  for (const TokenPenalty& entry : further.penalties) tokens->push_back(entry.token);
  tokens->insert(tokens->end(), further.barred.begin(), further.barred.end());
  std::erase_if(
      *tokens, [vocab](int32_t token) { return token < 0 || static_cast<size_t>(token) >= vocab; });
}

// As edit(), only for the tokens aside, which become candidates.
void Chain::edit_aside(const ShortRow& best, size_t n, std::span<const int32_t> said,
                       const TokenMask* mask, const Further& further) {
  aside_.resize(n);
  for (size_t i = 0; i < best.aside.size(); ++i) {
    aside_[static_cast<size_t>(best.aside[i])] = best.aside_logits[i];
  }
  edits_.clear();
  apply_bias(params_->logit_bias, aside_, &edits_);
  for (const int32_t token : best.aside) {
    if (mask != nullptr && !mask->allows(token)) aside_[static_cast<size_t>(token)] = kNothing;
  }
  const Penalties penalties = Penalties::of(*params_);
  if (penalties.any()) {
    const auto counts = counter_.count(said, params_->penalty_window, n);
    apply_penalties(counts, penalties, aside_, &edits_);
  }
  subtract(further.penalties, aside_, &edits_);
  for (const int32_t token : further.barred) {
    if (token >= 0 && static_cast<size_t>(token) < n) aside_[static_cast<size_t>(token)] = kNothing;
  }
  for (const int32_t token : best.aside) {
    float& logit = aside_[static_cast<size_t>(token)];
    if (logit != kNothing) candidates_.push_back({token, logit});
    logit = kNothing;  // it may occur again
  }
}

// Requires that only tokens of the row and aside can reach the bar, because the others are no
// larger than the row's last: the candidates are then all tokens that may be chosen.
Result<Choice> Chain::sample_short(const ShortRow& best, size_t n, std::span<const int32_t> said,
                                   uint64_t step, int64_t row, const TokenMask* mask,
                                   const Further& further) {
  candidates_.clear();
  for (size_t i = 0; i < best.logits.size() && best.logits[i] != kNothing; ++i) {
    candidates_.push_back({best.tokens[i], best.logits[i]});
  }
  if (!best.aside.empty()) edit_aside(best, n, said, mask, further);
  Choice choice;
  if (candidates_.empty()) {  // barred tokens may be drawn after all, and errors explain why
    if (best.aside.empty() && mask == nullptr) return all_impossible(row, n);
    return choice;
  }
  const Candidate top = *std::min_element(
      candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
      });
  if (!(params_->temperature > 0.0)) {
    choice.token = top.token;
    report(best, &choice);
    return choice;
  }
  if (draws_from_all()) return draw_from_slice(best, step);
  const auto top_k = static_cast<size_t>(std::max(params_->top_k, 0));
  float bar = kNothing;
  if (min_p_bars(*params_)) {
    bar = min_p_bar(std::min(params_->min_p, 1.0), top.logit, params_->temperature);
  }
  if (top_k > 0 && top_k <= candidates_.size()) {
    const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(top_k - 1);
    std::nth_element(candidates_.begin(), kth, candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
    bar = std::max(bar, kth->logit);
  }
  const float last = best.logits.back();
  if (last != kNothing && last >= bar && !mass_cuts(*params_)) return choice;
  std::erase_if(candidates_, [bar](const Candidate& one) { return one.logit < bar; });
  // Sums are taken in token order, as in a whole row.
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
  if (!cut_short(best, top.logit, step)) return choice;
  choice.token = draw_one(step, further);
  report(best, &choice);
  return choice;
}

// False if the row does not determine which candidates top-p keeps. Tokens outside the row weigh no
// more than its last, so the kept ones are determined as long as all of them weigh more.
bool Chain::cut_short(const ShortRow& best, float max, uint64_t step) {
  if (!mass_cuts(*params_)) {
    cut_candidates(max, step);
    return true;
  }
  weigh(max, params_->temperature, candidates_);
  const auto least = [this] {
    return std::min_element(
               candidates_.begin(), candidates_.end(),
               [](const Candidate& a, const Candidate& b) { return a.weight < b.weight; })
        ->weight;
  };
  const double last = least();
  apply_top_p(params_->top_p, mass_total(best.mass), &candidates_, &border_);
  if (best.logits.back() != kNothing && least() <= last) return false;
  cut_weighed(step);
  return true;
}

// The sums of all slices determine the slice that contains the token.
Choice Chain::draw_from_slice(const ShortRow& best, uint64_t step) {
  Choice choice;
  const double target = draw_place(step) * mass_total(best.mass);
  const MassPlace place = mass_place(best.mass, target);
  if (place.slice == best.mass.size()) return choice;
  candidates_.clear();
  const auto first = static_cast<int32_t>(place.slice) * kMassSlice;
  for (size_t i = 0; i < best.slice.size(); ++i) {
    if (best.slice[i] == kNothing) continue;
    candidates_.push_back({first + static_cast<int32_t>(i), best.slice[i]});
  }
  weigh(best.logits.front(), params_->temperature, candidates_);
  choice.token = draw_in_slice(candidates_, place.before, target);
  report(best, &choice);
  return choice;
}

// As sample() does. Nothing is edited in that case.
void Chain::report(const ShortRow& best, Choice* choice) {
  if (params_->logprobs < 0) return;
  const double log_sum = log_sum_exp(best.logits.front(), mass_total(best.mass));
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - log_sum);
  };
  top_.clear();
  for (size_t i = 0; i < static_cast<size_t>(params_->logprobs); ++i) {
    top_.push_back({best.tokens[i], logprob(best.logits[i])});
  }
  if (!best.slice.empty()) {
    choice->logprob = logprob(best.slice[static_cast<size_t>(choice->token % kMassSlice)]);
  } else {
    const auto at = std::find(best.tokens.begin(), best.tokens.end(), choice->token);
    choice->logprob = logprob(best.logits[static_cast<size_t>(at - best.tokens.begin())]);
  }
  choice->top = top_;
}

// Stores nothing, so that the most common setting costs one pass and no memory.
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

// Top-n-sigma, temperature, top-k and the rest: leaves the remaining tokens in candidates_.
void Chain::cut(std::span<const float> logits, float max, double deviation, uint64_t step) {
  const double temperature = params_->temperature;
  const auto top_k = static_cast<size_t>(std::max(params_->top_k, 0));
  const double min_p = std::min(params_->min_p, 1.0);
  float bar = kNothing;
  if (top_k > 0 && top_k < logits.size()) bar = peaks_.kth_largest(logits, top_k, &scratch_);
  // Tokens that min-p removes need no weight, unless a stage before it needs the total weight.
  if (min_p_bars(*params_)) bar = std::max(bar, min_p_bar(min_p, max, temperature));
  if (params_->top_n_sigma > 0.0) {
    bar = std::max(bar, top_n_sigma_bar(params_->top_n_sigma, deviation, max));
  }
  peaks_.collect(logits, bar, &candidates_);
  cut_candidates(max, step);
}

// Temperature and typical-p to mirostat.
void Chain::cut_candidates(float max, uint64_t step) {
  const double temperature = params_->temperature;
  weigh(max, temperature, candidates_);
  if (cuts(params_->typical_p)) {
    apply_typical_p(params_->typical_p, max, temperature, &candidates_, &border_);
  }
  if (cuts(params_->top_p)) apply_top_p(params_->top_p, &candidates_, &border_);
  cut_weighed(step);
}

// Min-p to mirostat.
void Chain::cut_weighed(uint64_t step) {
  const double min_p = std::min(params_->min_p, 1.0);
  if (min_p > 0.0) apply_min_p(min_p, &candidates_);
  if (params_->xtc_probability > 0.0 && params_->xtc_threshold >= 0.0 &&
      uniform_double(params_->seed, kXtcStream, step) < params_->xtc_probability) {
    apply_xtc(params_->xtc_threshold, &candidates_);
  }
  if (mirostat_.is_on()) mirostat_.cut(&candidates_);
}

}  // namespace gen::sampling
