// SPDX-License-Identifier: Apache-2.0
// See split_rows.h.
#include "generate/split_rows.h"

#include <algorithm>

namespace gen::generate {

SplitRows::SplitRows(std::span<const int32_t> tokens, std::span<const uint8_t> wants,
                     std::span<const int32_t> rows_of, size_t vocab)
    : tokens_(tokens),
      wants_(wants),
      left_(rows_of.begin(), rows_of.end()),
      vocab_(vocab),
      counts_(rows_of.size()) {
  size_t row = 0;
  for (const int32_t rows : rows_of) {
    next_row_.push_back(row);
    row += static_cast<size_t>(rows);
  }
  size_t place = 0;
  for (const uint8_t wanted : wants) place_.push_back(wanted != 0 ? place++ : place);
  n_wanted_ = place;
}

bool SplitRows::next(const std::function<int32_t(size_t cache)>& limit) {
  step_tokens_.clear();
  step_wants_.clear();
  places_.clear();
  for (size_t i = 0; i < left_.size(); ++i) {
    counts_[i] = left_[i] > 0 ? std::min(left_[i], limit(i)) : 0;
    for (int32_t n = 0; n < counts_[i]; ++n) {
      const size_t row = next_row_[i]++;
      step_tokens_.push_back(tokens_[row]);
      step_wants_.push_back(wants_[row]);
      if (wants_[row] != 0) places_.push_back(place_[row]);
    }
    left_[i] -= counts_[i];
  }
  step_logits_.resize(places_.size() * vocab_);
  return !step_tokens_.empty();
}

void SplitRows::collect() {
  if (places_.size() == n_wanted_) {  // one step has all rows
    logits_.swap(step_logits_);
    return;
  }
  logits_.resize(n_wanted_ * vocab_);
  for (size_t i = 0; i < places_.size(); ++i) {
    std::copy_n(step_logits_.data() + i * vocab_, vocab_, logits_.data() + places_[i] * vocab_);
  }
}

}  // namespace gen::generate
