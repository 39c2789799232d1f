// SPDX-License-Identifier: Apache-2.0
// See step_results.h.
#include "generate/step/step_results.h"

#include <algorithm>

#include "base/mass_slices.h"
#include "base/to_size.h"

namespace gen::generate {

StepResults::StepResults(size_t vocab) noexcept : vocab_(vocab), mass_slices_(mass_slices(vocab)) {}

void StepResults::begin(size_t requests) {
  extras_.clear();
  any_mask_ = any_mass_ = false;
  k_ = 1;
  n_logits_ = n_best_ = n_aside_ = 0;
  extras_.reserve(requests);
}

void StepResults::add(const graph::RowQuery& query, size_t n_logits, size_t n_best,
                      int32_t last) noexcept {
  n_logits_ += n_logits;
  n_best_ += n_best;
  if (n_best == 0) return;
  k_ = std::max(k_, query.best.k);
  if (query.extras.empty()) return;
  extras_.push_back(query.extras);
  extras_.back().row = last;
  any_mask_ = any_mask_ || !query.extras.mask.empty();
  any_mass_ = any_mass_ || query.extras.temperature > 0.0;
  n_aside_ += query.extras.aside.size();
}

void StepResults::place(const graph::RowQuery* only, graph::Batch* batch) {
  if (only != nullptr) {
    batch->logits = only->logits;
    batch->best = only->best;
  } else {
    logits_at_ = best_at_ = aside_at_ = 0;
    logits_.resize(n_logits_ * vocab_);
    best_tokens_.resize(n_best_ * to_size(k_));
    best_logits_.resize(n_best_ * to_size(k_));
    aside_logits_.resize(n_aside_);
    mass_.resize(any_mass_ ? n_best_ * mass_slices_ : 0);
    slice_.resize(any_mass_ ? n_best_ * kMassSlice : 0);
    batch->logits = logits_.data();
    batch->best.tokens = best_tokens_.data();
    batch->best.logits = best_logits_.data();
    batch->best.mass = mass_.data();
    batch->best.slice = slice_.data();
    batch->best.aside_logits = aside_logits_.data();
  }
  batch->logits_rows = n_logits_;
  batch->best.k = k_;
  batch->best.rows = n_best_;
  batch->best.mass_slices = mass_slices_;
  batch->extras = extras_;
}

void StepResults::hand_out(const graph::RowQuery& to, size_t n_logits, size_t n_best) noexcept {
  std::copy_n(logits_.data() + logits_at_ * vocab_, n_logits * vocab_, to.logits);
  logits_at_ += n_logits;
  if (n_best == 0) return;
  // Each request takes the first of the tokens found for the request that wants the most.
  const size_t k = to_size(to.best.k);
  for (size_t row = 0; row < n_best; ++row, ++best_at_) {
    std::copy_n(best_tokens_.data() + best_at_ * to_size(k_), k, to.best.tokens + row * k);
    std::copy_n(best_logits_.data() + best_at_ * to_size(k_), k, to.best.logits + row * k);
  }
  const size_t last = best_at_ - 1;
  if (to.extras.temperature > 0.0) {
    std::copy_n(mass_.data() + last * mass_slices_, mass_slices_, to.best.mass);
    if (to.extras.place >= 0.0) {
      std::copy_n(slice_.data() + last * kMassSlice, kMassSlice, to.best.slice);
    }
  }
  const size_t n_aside = to.extras.aside.size();
  std::copy_n(aside_logits_.data() + aside_at_, n_aside, to.best.aside_logits);
  aside_at_ += n_aside;
}

void StepResults::hand_out_row(const graph::RowQuery& to, size_t row, size_t from) noexcept {
  to.best.tokens[row] = best_tokens_[from];
  to.best.logits[row] = best_logits_[from];
}

}  // namespace gen::generate
