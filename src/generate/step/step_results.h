// SPDX-License-Identifier: Apache-2.0
// StepResults: what the rows of a step are asked beside their logits, and memory for what they
// answer. A single request's answers are written where it says; those of several come one after
// another, so that an engine brings them in one transfer, and each request is handed its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/batch.h"
#include "graph/row_query.h"

namespace gen::generate {

/// Keeps its memory, so that a decode step allocates nothing. Threads: one at a time.
class StepResults {
 public:
  /// Of rows of `vocab` logits.
  explicit StepResults(size_t vocab) noexcept;
  StepResults(const StepResults&) = delete;
  StepResults& operator=(const StepResults&) = delete;

  /// Forgets the rows, and makes room for so many requests. May throw std::bad_alloc.
  void begin(size_t requests);
  /// Adds the rows of a request: so many want logits, so many best; `last` is its last row in the
  /// batch. begin() made room.
  void add(const graph::RowQuery& query, size_t n_logits, size_t n_best, int32_t last) noexcept;
  /// Some row has a mask.
  [[nodiscard]] bool any_mask() const noexcept { return any_mask_; }
  /// All rows want their best token alone, and there are fewer than were added.
  void cut_to_best(size_t n_best) noexcept { n_best_ = n_best; }

  /// Says in a batch what is asked and where answers go: where `only` says, the query of the only
  /// request, or if it is null here. May throw std::bad_alloc.
  void place(const graph::RowQuery* only, graph::Batch* batch);

  /// Copies a request's answers from here to where it wants them. Requests come in the order in
  /// which they were added, each once.
  void hand_out(const graph::RowQuery& to, size_t n_logits, size_t n_best) noexcept;
  /// In a run of steps: the best token of row `from` here becomes that of row `row` of a request.
  void hand_out_row(const graph::RowQuery& to, size_t row, size_t from) noexcept;

 private:
  const size_t vocab_;
  const size_t mass_slices_;
  std::vector<graph::RowExtras> extras_;
  bool any_mask_ = false;
  bool any_mass_ = false;
  int32_t k_ = 1;  // the most that one of them wants
  size_t n_logits_ = 0;
  size_t n_best_ = 0;
  size_t n_aside_ = 0;  // tokens

  std::vector<float> logits_;         // [n_logits_, V]
  std::vector<int32_t> best_tokens_;  // [n_best_, k_]
  std::vector<float> best_logits_;
  std::vector<float> aside_logits_;  // [n_aside_]
  std::vector<double> mass_;         // [n_best_, mass_slices_], if some row wants any
  std::vector<float> slice_;         // [n_best_, kMassSlice], the same

  // What hand_out() has come to.
  size_t logits_at_ = 0;
  size_t best_at_ = 0;
  size_t aside_at_ = 0;
};

}  // namespace gen::generate
