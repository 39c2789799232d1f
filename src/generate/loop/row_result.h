// SPDX-License-Identifier: Apache-2.0
// RowResult: what the model answers for the token of a call that is next, and for the drafts behind
// it. Where the best tokens of a row decide nearly every choice only those are asked for, with what
// a grammar, penalties and a draw need beside them; a row that they do not decide is run again for
// all of its logits.
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

/// Owns the memory of the answers, from which a token is picked. Threads: one at a time, and
/// note_mask() from who runs the step.
class RowResult {
 public:
  /// `vocab` tokens may be picked, the first of the model's.
  RowResult(const model::ModelTraits& traits, int32_t vocab) noexcept
      : traits_(traits), vocab_(static_cast<size_t>(vocab)) {}
  RowResult(const RowResult&) = delete;
  RowResult& operator=(const RowResult&) = delete;

  /// Decides what rows of the call are asked for: `ruled` ones have masks, `drafted` ones have
  /// guesses behind them, each with a text and a mask of its own.
  void begin(const TokenPicker& picker, bool ruled, bool drafted) noexcept;
  /// Makes room for the rows of a step. May throw std::bad_alloc.
  void make_room(size_t rows);

  /// The next row answers with its best tokens, not with all logits.
  [[nodiscard]] bool is_short() const noexcept { return need_.k > 0 && !whole_; }
  /// A row is run again, for all of its logits; no drafts come behind it.
  [[nodiscard]] bool is_whole_again() const noexcept { return whole_; }
  /// The best token of each row is all that the call ever looks at.
  [[nodiscard]] bool is_best_alone() const noexcept { return best_alone_; }

  /// Fills in what the row of the token `at` is asked, and where its answer goes; `make_mask`
  /// writes the mask of `rule` (may be null) while it runs. Where many tokens are set aside the
  /// whole row costs no more.
  Status ask(TokenPicker* picker, const TokenPicker::At& at, const GrammarRule* rule,
             graph::During make_mask, graph::RowQuery* query);
  /// The mask was made in time, and the best tokens are those that it allows; or it was not.
  void note_mask(bool made) noexcept { masked_ = made; }

  /// Picks from a row of the step; token -1 where its best tokens do not decide it, see
  /// ask_again().
  Result<sampling::Choice> pick(TokenPicker* picker, int32_t row, const TokenPicker::At& at);
  /// The next ask() is for all logits.
  void ask_again() noexcept { whole_ = true; }
  /// The row has been picked from.
  void taken() noexcept { whole_ = false; }

 private:
  [[nodiscard]] size_t width() const noexcept { return static_cast<size_t>(traits_.vocab_size); }

  const model::ModelTraits& traits_;
  const size_t vocab_;
  sampling::ShortRowNeed need_;  // k = 0: all logits, always
  bool best_alone_ = false;
  bool whole_ = false;               // the row at hand is asked for all logits instead
  bool masked_ = false;              // note_mask()
  std::vector<float> logits_;        // [rows, V], or those of best_
  std::vector<int32_t> best_;        // [rows, need_.k]
  std::vector<int32_t> aside_;       // tokens whose logits the call changes
  std::vector<float> aside_logits_;  // of these, as they came
  std::vector<double> mass_;         // of the row, by slice
  std::vector<float> slice_;         // the slice that contains the draw
};

}  // namespace gen::generate
