// SPDX-License-Identifier: Apache-2.0
// Splits the rows of a forward call into steps: each cache takes as many of its rows as one plan
// allows (KvCache::plan_limit). Only caches that compress chunks need more than one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace gen::generate {

class SplitRows {
 public:
  /// Rows are grouped by cache, rows_of[i] of cache i. The spans must outlive the object.
  SplitRows(std::span<const int32_t> tokens, std::span<const uint8_t> wants,
            std::span<const int32_t> rows_of, size_t vocab);

  /// Chooses the rows of the next step, at most limit(i) of cache i; false if none are left.
  bool next(const std::function<int32_t(size_t cache)>& limit);
  /// Of the current step: rows of a cache, and all rows.
  [[nodiscard]] int32_t count(size_t cache) const { return counts_[cache]; }
  [[nodiscard]] std::span<const int32_t> tokens() const { return step_tokens_; }
  [[nodiscard]] const std::vector<uint8_t>& wants() const { return step_wants_; }
  [[nodiscard]] size_t wanted() const { return places_.size(); }
  /// Buffer for the logits of this step, [wanted(), vocab].
  [[nodiscard]] float* logits() { return step_logits_.data(); }
  /// Copies the step's logits to their place in the result.
  void collect();
  /// After the last step: [rows that want logits, vocab].
  [[nodiscard]] std::vector<float> take_logits() { return std::move(logits_); }

 private:
  std::span<const int32_t> tokens_;
  std::span<const uint8_t> wants_;
  std::vector<size_t> next_row_;  // by cache
  std::vector<int32_t> left_;
  std::vector<size_t> place_;  // by row: index of its logits in the result
  size_t vocab_;
  size_t n_wanted_ = 0;
  std::vector<float> logits_;
  std::vector<int32_t> counts_;
  std::vector<int32_t> step_tokens_;
  std::vector<uint8_t> step_wants_;
  std::vector<size_t> places_;
  std::vector<float> step_logits_;
};

}  // namespace gen::generate
