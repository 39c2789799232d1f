// SPDX-License-Identifier: Apache-2.0
// Splits the rows of a forward call into steps: each cache takes as many of its rows as one plan
// may have (KvCache::plan_limit). Only caches that pool chunks have a limit.
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
  /// Rows come cache by cache, rows_of[i] of cache i. Spans must outlive the object.
  SplitRows(std::span<const int32_t> tokens, std::span<const uint8_t> wants,
            std::span<const int32_t> rows_of, size_t vocab);

  /// Chooses the rows of the next step, at most limit(i) of cache i; false when none are left.
  bool next(const std::function<int32_t(size_t cache)>& limit);
  /// Of this step: rows of a cache, and all rows.
  [[nodiscard]] int32_t count(size_t cache) const { return counts_[cache]; }
  [[nodiscard]] std::span<const int32_t> tokens() const { return step_tokens_; }
  [[nodiscard]] const std::vector<uint8_t>& wants() const { return step_wants_; }
  [[nodiscard]] size_t wanted() const { return places_.size(); }
  /// Where this step's logits go, [wanted(), vocab].
  [[nodiscard]] float* logits() { return step_logits_.data(); }
  /// Puts them where they belong in take_logits().
  void collect();
  /// After the last step: [rows that want logits, vocab].
  [[nodiscard]] std::vector<float> take_logits() { return std::move(logits_); }

 private:
  std::span<const int32_t> tokens_;
  std::span<const uint8_t> wants_;
  std::vector<size_t> next_row_;  // by cache
  std::vector<int32_t> left_;
  std::vector<size_t> place_;  // by row: its logits among all
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
