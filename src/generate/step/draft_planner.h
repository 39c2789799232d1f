// SPDX-License-Identifier: Apache-2.0
// DraftPlanner: how many rows of a step are worth guessing, over all of its sequences. What lookups
// have found is there already; a row of what is still to be proposed costs the drafter's time, too.
// A row brings a token with the chance that its guess and all before it are right, and costs what
// the pass takes longer by it. The rows most likely to be right come first, and there are as many
// of them as give the most tokens a second; none, where that is best. Then one sequence tries a few
// now and then, more and more seldom, so that a change is noticed. So that there is something to
// compare with, a step is plain where none of as many sequences has been measured, and now and
// then. The ledger bounds what all that may lose. Times are those of whole steps: planning, pass,
// and what sessions do with its results until they come back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/draft/draft_policy.h"
#include "generate/step/draft_ledger.h"
#include "generate/step/step_costs.h"
#include "generate/step/step_plan.h"

namespace gen::generate {

/// Of a step, in this order: begin(); if that is true limit(), note_looking() and, where something
/// is proposed, note_proposing(); end(), unless it has failed. Threads: the leader of the moment.
class DraftPlanner {
 public:
  explicit DraftPlanner(const DraftPolicy& policy) : policy_(policy) {}

  [[nodiscard]] bool active() const noexcept { return policy_.now() == DraftPolicy::Kind::kAuto; }
  /// Seconds.
  [[nodiscard]] double now() const;
  /// Whether anything is guessed in a step of these slices. May throw std::bad_alloc.
  bool begin(std::span<const StepPlan::Slice> slices);
  /// Lowers how many rows of guesses the slices have: of what their trees have, or else of what a
  /// drafter may propose, `max_proposed` at most. May throw std::bad_alloc.
  void limit(std::span<StepPlan::Slice> slices, int32_t max_proposed);
  /// Looking up and planning took so long.
  void note_looking(double seconds) noexcept;
  /// Proposing took so long, and the longest guess was of `depth` tokens.
  void note_proposing(int32_t depth, double seconds) noexcept;
  /// The pass is over and its results are handed out; it had `rows` rows, none of them of prompts.
  void end(int32_t rows) noexcept;

  /// Steps without drafts before one tries: the least, and the most that it becomes.
  static constexpr int32_t kFirstProbe = 16;
  static constexpr int32_t kLastProbe = 1024;
  static constexpr int32_t kProbeRows = 4;
  /// Steps with drafts before one is plain: at first, and the most that it becomes.
  static constexpr int32_t kFirstPlain = 4;
  static constexpr int32_t kPlainAfter = 64;
  /// So many times the tokens a second of a plain step must drafts promise: measured times are not
  /// better than that.
  static constexpr double kMargin = 1.02;
  /// And where a step is of several sequences: those that have been luckier end sooner, and then
  /// the steps of the others are of fewer, each of which takes nearly as long as one of all.
  static constexpr double kMarginTogether = 1.08;
  /// Sessions that come back later than so many times what their step took were not at work.
  static constexpr double kIdle = 4.0;

 private:
  struct Candidate {
    StepPlan::Slice* slice;
    bool proposes;        // nothing has been found for it
    int32_t rows = 0;     // taken so far
    double chance = 1.0;  // that the next one, too, is right
  };
  void advance(Candidate* candidate) const noexcept;
  void settle(double now, bool same) noexcept;
  void take_in(DraftRecord* record) noexcept;
  void gather(std::span<StepPlan::Slice> slices, int32_t max_proposed);
  [[nodiscard]] size_t best_rows();
  [[nodiscard]] double margin() const noexcept { return rows_ > 1 ? kMarginTogether : kMargin; }
  void probe() noexcept;

  const DraftPolicy policy_;
  StepCosts steps_;
  double proposing_ = 0;        // seconds for each token of depth
  DraftAcceptance acceptance_;  // of all
  DraftLedger ledger_;
  int32_t quiet_ = 0;  // steps since something was guessed that might have been
  int32_t busy_ = 0;   // steps since nothing was
  int32_t plain_after_ = kFirstPlain;
  int32_t probe_after_ = kFirstProbe;

  // Of the step.
  int32_t rows_ = 0;    // without guesses
  int32_t looked_ = 0;  // with them, once it has ended; 0: it has not, or is settled
  size_t who_ = 0;      // its sequences
  double begin_ = 0;
  double end_ = 0;
  double spent_ = 0;  // seconds on looking up and proposing
  std::vector<Candidate> candidates_;
  std::vector<Candidate*> order_;  // in which rows were taken
};

}  // namespace gen::generate
