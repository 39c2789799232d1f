// SPDX-License-Identifier: Apache-2.0
// See row_result.h.
#include "generate/loop/row_result.h"

#include <algorithm>
#include <span>

#include "base/mass_slices.h"
#include "generate/text/grammar_rule.h"

namespace gen::generate {
namespace {

/// If more than 1/kMaxAside of the vocabulary is set aside, all logits of the row are transferred.
constexpr size_t kMaxAside = 8;

}  // namespace

void RowResult::begin(const TokenPicker& picker, bool ruled, bool drafted) noexcept {
  const sampling::ShortRowNeed need = picker.short_row(ruled);
  const bool extras = ruled || picker.edits() || need.temperature > 0.0;
  const bool can_be_short = width() == vocab_ && need.k <= traits_.max_best &&
                            need.k < traits_.vocab_size &&
                            (!extras || (traits_.rules_best && !drafted));
  if (!can_be_short) return;
  need_ = need;
  best_alone_ = need.k == 1 && !extras;
}

void RowResult::make_room(size_t rows) {
  const auto n_best = static_cast<size_t>(need_.k);
  best_.resize(rows * n_best);
  logits_.resize(rows * (n_best > 0 ? n_best : width()));
}

Status RowResult::ask(TokenPicker* picker, const TokenPicker::At& at, const GrammarRule* rule,
                      graph::During make_mask, graph::RowQuery* query) {
  if (is_short()) {
    masked_ = false;
    query->best.k = need_.k;
    query->best.tokens = best_.data();
    query->best.logits = logits_.data();
    if (rule != nullptr) {
      query->extras.mask = rule->mask().bits;
      query->during = make_mask;
    }
    if (need_.temperature > 0.0) {
      mass_.resize(mass_slices(vocab_));
      query->extras.temperature = need_.temperature;
      query->best.mass = mass_.data();
    }
    if (need_.slice) {
      slice_.resize(kMassSlice);
      query->extras.place = picker->draw_place(at);
      query->best.slice = slice_.data();
    }
    if (picker->edits()) {
      GEN_TRY(picker->list_edited(at, vocab_, &aside_));
      aside_logits_.resize(aside_.size());
      query->extras.aside = aside_;
      query->best.aside_logits = aside_logits_.data();
      whole_ = aside_.size() > vocab_ / kMaxAside;
    }
    if (is_short()) return {};
  }
  *query = {};
  if (whole_) logits_.resize(std::max(logits_.size(), width()));
  query->logits = logits_.data();
  return {};
}

Result<sampling::Choice> RowResult::pick(TokenPicker* picker, int32_t row,
                                         const TokenPicker::At& at) {
  const auto index = static_cast<size_t>(row);
  if (!is_short()) return picker->pick(std::span(logits_).subspan(index * width(), vocab_), at);
  if (at.mask != nullptr && !masked_) return sampling::Choice();
  const auto n = static_cast<size_t>(need_.k);
  const sampling::ShortRow best = {std::span(best_).subspan(index * n, n),
                                   std::span(logits_).subspan(index * n, n),
                                   aside_,
                                   aside_logits_,
                                   mass_,
                                   slice_};
  return picker->pick_short(best, vocab_, at);
}

}  // namespace gen::generate
