// SPDX-License-Identifier: Apache-2.0
// StepResults: the queries of a step's rows and memory for their answers. A single request's
// answers are written directly to its memory. Those of several requests are contiguous here, so
// that an engine transfers them at once, and are then copied to each request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/batch.h"
#include "graph/row_query.h"

namespace gen::generate {

/// Keeps its memory, so that a decode step does not allocate. Threads: one at a time.
class StepResults {
 public:
  /// For rows of `vocab` logits.
  explicit StepResults(size_t vocab) noexcept;
  StepResults(const StepResults&) = delete;
  StepResults& operator=(const StepResults&) = delete;

  /// Removes all rows and reserves memory for `requests` requests. May throw std::bad_alloc.
  void begin(size_t requests);
  /// Adds the rows of a request: `n_logits` return logits, `n_best` best tokens; `last` is its last
  /// row in the batch. begin() has reserved the memory.
  void add(const graph::RowQuery& query, size_t n_logits, size_t n_best, int32_t last) noexcept;
  /// True if some row has a mask.
  [[nodiscard]] bool any_mask() const noexcept { return any_mask_; }
  /// Lowers the number of rows that return their best token; all rows return that only.
  void cut_to_best(size_t n_best) noexcept { n_best_ = n_best; }

  /// Sets the query of the batch and where answers go: to the memory of `only`, the query of the
  /// only request, or to this object if it is null. May throw std::bad_alloc.
  void place(const graph::RowQuery* only, graph::Batch* batch);

  /// Copies a request's answers to its memory. Call it once for each request, in the order of
  /// add().
  void hand_out(const graph::RowQuery& to, size_t n_logits, size_t n_best) noexcept;
  /// For a run of steps: copies the best token of row `from` of this object to row `row` of a
  /// request.
  void hand_out_row(const graph::RowQuery& to, size_t row, size_t from) noexcept;

 private:
  const size_t vocab_;
  const size_t mass_slices_;
  std::vector<graph::RowExtras> extras_;
  bool any_mask_ = false;
  bool any_mass_ = false;
  int32_t k_ = 1;  // most best tokens that a request wants
  size_t n_logits_ = 0;
  size_t n_best_ = 0;
  size_t n_aside_ = 0;  // tokens

  std::vector<float> logits_;         // [n_logits_, V]
  std::vector<int32_t> best_tokens_;  // [n_best_, k_]
  std::vector<float> best_logits_;
  std::vector<float> aside_logits_;  // [n_aside_]
  std::vector<double> mass_;         // [n_best_, mass_slices_], if some row wants any
  std::vector<float> slice_;         // [n_best_, kMassSlice], the same

  // Positions of hand_out().
  size_t logits_at_ = 0;
  size_t best_at_ = 0;
  size_t aside_at_ = 0;
};

}  // namespace gen::generate
