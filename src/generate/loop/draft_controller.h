// SPDX-License-Identifier: Apache-2.0
// DraftController: the drafts of one call. It limits how many a step may add after the call's next
// token, follows the rows of the step along the sampled tokens, and reports the accepted ones to
// the sequence, the drafter, the policy and the metrics. A call without drafts has trees of one
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

/// Owns the job that a step fills, the path through its tree and, while the call is open, the state
/// that the session's drafter keeps. Threads: one at a time; while a step runs, the job belongs to
/// the step.
class DraftController {
 public:
  /// Both must outlive it. It writes the drafts of `result`, and their counts in its usage.
  DraftController(const Generator& generator, GenResult* result) noexcept;
  ~DraftController();
  DraftController(const DraftController&) = delete;
  DraftController& operator=(const DraftController&) = delete;

  /// What it needs to know about a call.
  struct Call {
    const sampling::SamplingParams& sampling;
    const GrammarRule* rule;  // may be null
    size_t max_tokens;        // of the whole text, with what the session holds before
  };
  /// Chooses the source of drafts: the generator's drafter, which continues from `*kept` (may be
  /// null), or the model itself in runs of several steps. Reserves memory in `result`. If there is
  /// no memory for drafts the call runs without. May throw std::bad_alloc if there is none for a
  /// single row.
  void begin(const Call& call, std::unique_ptr<DraftState>* kept, RowResult* result);
  /// True if the call may have drafts.
  [[nodiscard]] bool guesses() const noexcept { return source_ != Source::kNobody; }
  /// The text has ended or pauses here.
  void ended(std::span<const int32_t> text) noexcept;
  /// The drafter's state; null if there is none.
  [[nodiscard]] DraftState* state() const noexcept { return state_.get(); }
  /// Returns it for the next call.
  [[nodiscard]] std::unique_ptr<DraftState> take_state() noexcept { return std::move(state_); }

  // One step.

  /// The job for a step in which `left` more tokens may be generated. `held` is the session's text,
  /// its last `said` tokens are the call's; `stops` end it.
  DraftJob* offer(std::span<const int32_t> held, size_t said, std::span<const int32_t> stops,
                  int32_t left) noexcept;
  /// The row of the tree whose token is sampled next; 0 before the step has run and between steps.
  [[nodiscard]] int32_t row() const noexcept { return row_; }
  /// With rejection sampling: the token drafted after that row and its distribution.
  [[nodiscard]] std::optional<sampling::Proposal> proposal() const noexcept;
  /// The grammar has accepted a token. If the drafter's own matcher cannot follow, drafting ends.
  void follow_rule(int32_t token) noexcept;
  /// Adds the current row to the path.
  void enter() noexcept { path_.push_back(row_); }  // begin() made room
  /// Moves to the row that drafted `token`. False if there is none in this step, or if the text
  /// ends with the token (`goes_on` is false).
  bool advance(int32_t token, bool goes_on) noexcept;
  /// Keeps the rows of the path and the current one; nothing follows it.
  void keep_row(Sequence* sequence) noexcept;
  /// Ends the step: the rows of the path count as evaluated, the others are discarded.
  void end_step(Sequence* sequence) noexcept;

 private:
  enum class Source { kNobody, kDrafter, kModel };

  bool begin_drafter(const Call& call, std::unique_ptr<DraftState>* kept, RowResult* result);
  void begin_runs(RowResult* result) noexcept;
  void make_room(size_t rows, RowResult* result);
  [[nodiscard]] int32_t max_drafts(int32_t said) noexcept;
  void begin_draws(std::span<const int32_t> held, size_t said) noexcept;
  void note(int32_t drafted, int32_t accepted) noexcept;
  void record() noexcept;

  const Generator& generator_;
  GenResult& result_;
  Source source_ = Source::kNobody;
  std::unique_ptr<DraftState> state_;       // null if no drafter is used
  std::unique_ptr<grammar::Matcher> rule_;  // copy of the call's; null without a grammar
  std::optional<DraftDraw> draw_;           // empty for a greedy call
  int32_t max_drafts_ = 0;                  // limit of the drafter
  AcceptTracker tracker_{0};
  int32_t paused_until_ = 0;  // length of the text up to which drafting pauses

  DraftJob job_;
  int32_t index_ = 0;  // of the token after the tree's first row among those of the call
  int32_t row_ = 0;
  int32_t hit_ = 0;            // the last accepted row
  std::vector<int32_t> path_;  // rows of the tree along the sampled tokens
  int32_t hits_ = 0;           // accepted rows, including one that ended the text
};

}  // namespace gen::generate
