// SPDX-License-Identifier: Apache-2.0
// DraftController: the guesses of one call. It says how many a step may add behind the call's next
// token, follows the rows of the step along the tokens that are drawn, and tells the sequence, the
// drafter, the policy and the metrics what came of them. A call without drafts has trees of one
// row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "generate/draft/accept_tracker.h"
#include "generate/draft/draft_draw.h"
#include "generate/draft/drafter.h"
#include "generate/request/result.h"
#include "sampling/params.h"

namespace gen::grammar {
class Matcher;
}  // namespace gen::grammar

namespace gen::generate {

class Generator;
class GrammarRule;
class RowResult;
class Sequence;

/// Owns the job that a step fills, the path through its tree, and while the call is open the state
/// that the session's drafter keeps. Threads: one at a time; the job is the step's while it runs.
class DraftController {
 public:
  /// Both must outlive it; of `usage` it writes what was drafted and accepted.
  DraftController(const Generator& generator, Usage* usage) noexcept;
  ~DraftController();
  DraftController(const DraftController&) = delete;
  DraftController& operator=(const DraftController&) = delete;

  /// What it needs to know of a call.
  struct Call {
    const sampling::SamplingParams& sampling;
    const GrammarRule* rule;  // may be null
    size_t max_tokens;        // of its text, with all that the session holds before
  };
  /// Finds out who guesses for the call: the generator's drafter, which goes on from `*kept` (may
  /// be null), or the model by itself, in runs of several steps; and makes room in `result`.
  /// Without memory for drafts the call does without. May throw std::bad_alloc for a single row.
  void begin(const Call& call, std::unique_ptr<DraftState>* kept, RowResult* result);
  /// There may be guesses.
  [[nodiscard]] bool guesses() const noexcept { return source_ != Source::kNobody; }
  /// The text has ended, or stands here for now.
  void ended(std::span<const int32_t> text) noexcept;
  /// The drafter's state, for the next call; null if there is none.
  [[nodiscard]] std::unique_ptr<DraftState> take_state() noexcept { return std::move(state_); }

  // A step.

  /// The job for a step in which `left` tokens may still be said: after `held`, the last `said` of
  /// which are the call's, which `stops` end.
  DraftJob* offer(std::span<const int32_t> held, size_t said, std::span<const int32_t> stops,
                  int32_t left) noexcept;
  /// Row of the tree whose token is next; 0 before rows have come, and between steps.
  [[nodiscard]] int32_t row() const noexcept { return row_; }
  /// Under rejection: what was guessed behind that row, and from what it was drawn.
  [[nodiscard]] std::optional<sampling::Proposal> proposal() const noexcept;
  /// The grammar has taken a token. Where the drafter's own copy cannot there are no more drafts.
  void follow_rule(int32_t token) noexcept;
  /// The text goes through the row that is next.
  void enter() noexcept { path_.push_back(row_); }  // begin() made room
  /// It goes on with a token, to the row that guessed it, or ends with it; false if no row of the
  /// step is next.
  bool advance(int32_t token, bool goes_on) noexcept;
  /// Keeps what the text went through, the row that is next with it, which nothing follows.
  void keep_row(Sequence* sequence) noexcept;
  /// The rows of the step that the text went through are evaluated, the others have never been.
  void end_step(Sequence* sequence) noexcept;

 private:
  enum class Source { kNobody, kDrafter, kModel };

  bool begin_drafter(const Call& call, std::unique_ptr<DraftState>* kept, RowResult* result);
  void begin_runs(RowResult* result) noexcept;
  void make_room(size_t rows, RowResult* result);
  [[nodiscard]] int32_t max_drafts(int32_t said) noexcept;
  void begin_draws(std::span<const int32_t> held, size_t said) noexcept;
  void note(int32_t drafted, int32_t accepted) noexcept;

  const Generator& generator_;
  Usage& usage_;
  Source source_ = Source::kNobody;
  std::unique_ptr<DraftState> state_;       // null where no drafter guesses
  std::unique_ptr<grammar::Matcher> rule_;  // where the call's is, for the drafter; null without
  std::optional<DraftDraw> draw_;           // none where the best token is taken
  int32_t max_drafts_ = 0;                  // of the drafter
  AcceptTracker tracker_{0};
  int32_t paused_until_ = 0;  // tokens of the text; nothing is guessed before

  DraftJob job_;
  int32_t row_ = 0;
  std::vector<int32_t> path_;  // rows of the tree that the text went through
  int32_t hits_ = 0;           // rows that guessed what was drawn, one that ended the text included
};

}  // namespace gen::generate
