// SPDX-License-Identifier: Apache-2.0
// RowResult: the model's answer for the next token of a call and for the drafts after it. If the
// best tokens of a row nearly always decide the choice, only these are requested, along with what a
// grammar, penalties and a random draw need. A row that they do not decide is run again for all of
// its logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "generate/text/token_picker.h"
#include "graph/row_query.h"
#include "model/model.h"
#include "sampling/short_row.h"

namespace gen::generate {

class GrammarRule;

/// Owns the memory of the answers. Threads: one at a time; note_mask() is called by the thread that
/// runs the step.
class RowResult {
 public:
  /// Tokens below `vocab` may be picked.
  RowResult(const model::ModelTraits& traits, int32_t vocab) noexcept
      : traits_(traits), vocab_(static_cast<size_t>(vocab)) {}
  RowResult(const RowResult&) = delete;
  RowResult& operator=(const RowResult&) = delete;

  /// Decides what the rows of the call request: `ruled` rows have masks, `drafted` rows have drafts
  /// after them, each with its own text and mask.
  void begin(const TokenPicker& picker, bool ruled, bool drafted) noexcept;
  /// Reserves memory for the rows of a step. May throw std::bad_alloc.
  void make_room(size_t rows);

  /// The next row returns its best tokens, not all logits.
  [[nodiscard]] bool is_short() const noexcept { return need_.k > 0 && !whole_; }
  /// The row is run again for all of its logits, without drafts.
  [[nodiscard]] bool is_whole_again() const noexcept { return whole_; }
  /// The call only ever uses the best token of each row.
  [[nodiscard]] bool is_best_alone() const noexcept { return best_alone_; }

  /// Fills in the query of the row for the token `at` and where its answer goes. `make_mask` writes
  /// the mask of `rule` (may be null) while the row runs. If many tokens are set aside the query
  /// asks for all logits, which costs no more.
  Status ask(TokenPicker* picker, const TokenPicker::At& at, const GrammarRule* rule,
             graph::During make_mask, graph::RowQuery* query);
  /// Whether the mask was ready in time, so that the best tokens are the best allowed ones.
  void note_mask(bool made) noexcept { masked_ = made; }

  /// Picks a token from a row of the step; token -1 if its best tokens do not decide, see
  /// ask_again().
  Result<sampling::Choice> pick(TokenPicker* picker, int32_t row, const TokenPicker::At& at);
  /// Makes the next ask() request all logits.
  void ask_again() noexcept { whole_ = true; }
  /// A token was picked from the row.
  void taken() noexcept { whole_ = false; }

 private:
  [[nodiscard]] size_t width() const noexcept { return static_cast<size_t>(traits_.vocab_size); }

  const model::ModelTraits& traits_;
  const size_t vocab_;
  sampling::ShortRowNeed need_;  // k = 0: always all logits
  bool best_alone_ = false;
  bool whole_ = false;               // the current row requests all logits instead
  bool masked_ = false;              // the row was masked, see note_mask()
  std::vector<float> logits_;        // [rows, V], or the logits of best_
  std::vector<int32_t> best_;        // [rows, need_.k]
  std::vector<int32_t> aside_;       // tokens whose logits the call changes
  std::vector<float> aside_logits_;  // their unmodified logits
  std::vector<double> mass_;         // probability mass of the row, by slice
  std::vector<float> slice_;         // the slice of the row that contains the draw
};

}  // namespace gen::generate
