// SPDX-License-Identifier: Apache-2.0
// DraftPlanner: how many rows of a step are worth guessing, over all of its sequences. A row brings
// a token with the chance that its guess and all before it are right, and costs what the pass and
// the drafter take longer by it. The rows most likely to be right come first, and there are as many
// of them as give the most tokens a second; none, where that is best. Then one sequence tries a few
// now and then, more and more seldom, so that a change is noticed. So that there is something to
// compare with, a step is plain where none of as many sequences has been measured, and now and
// then, and now and then has all the rows that there may be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/speculative/draft_policy.h"
#include "generate/speculative/step_costs.h"
#include "generate/step_plan.h"

namespace gen::generate {

/// Threads: the leader of the moment.
class DraftPlanner {
 public:
  explicit DraftPlanner(const DraftPolicy& policy) : policy_(policy) {}

  [[nodiscard]] bool active() const noexcept { return policy_.now() == DraftPolicy::Kind::kAuto; }
  /// Seconds.
  [[nodiscard]] double now() const;
  /// Lowers how many rows drafters may add to the parts of a step. May throw std::bad_alloc.
  void limit(std::span<StepPlan::Part> parts);
  /// A pass took so long, over `rows` rows.
  void note_pass(int32_t rows, double seconds) noexcept { passes_.note(rows, seconds); }
  /// A drafter took so long, and its longest guess was of `depth` tokens.
  void note_drafting(int32_t depth, double seconds) noexcept;

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
  /// And before one has all rows that there may be, as chances are known only of those that come.
  static constexpr int32_t kDeepAfter = 32;

 private:
  struct Candidate {
    StepPlan::Part* part;
    int32_t rows = 0;     // taken so far
    double chance = 1.0;  // that the next one, too, is right
  };
  void advance(Candidate* candidate) const noexcept;
  void take_in(DraftRecord* record) noexcept;

  const DraftPolicy policy_;
  StepCosts passes_;
  double drafting_ = 0;              // seconds for each token of depth
  AcceptanceByPosition acceptance_;  // of all
  int32_t quiet_ = 0;                // steps since something was guessed
  int32_t busy_ = 0;                 // steps since nothing was
  int32_t plain_after_ = kFirstPlain;
  int32_t probe_after_ = kFirstProbe;
  std::vector<Candidate> candidates_;
  std::vector<StepPlan::Part*> order_;  // in which rows were taken
};

}  // namespace gen::generate
