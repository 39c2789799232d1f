// SPDX-License-Identifier: Apache-2.0
// DraftPlanner: decides how many draft rows of a step pay, over all of its sequences. Rows found by
// lookups are free; rows still to be proposed cost the drafter's time. A row gives a token with the
// probability that its draft and all before it are accepted, and costs the time by which it
// lengthens the pass. Rows are taken in the order of that probability, as many as maximise tokens
// per second; none if a plain step is best. In that case one sequence tries a few rows now and
// then, at growing intervals, to notice a change. For comparison a step is plain if no plain step
// of this size was measured, and now and then otherwise. The ledger bounds the total loss. Times
// are those of whole steps: planning, the pass, and the work of the sessions until they return.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/draft/draft_policy.h"
#include "generate/step/draft_ledger.h"
#include "generate/step/step_costs.h"
#include "generate/step/step_plan.h"

namespace gen::generate {

/// For each step, in this order: begin(); if it returns true limit(), note_looking() and, if drafts
/// are proposed, note_proposing(); end(), unless the step failed. Threads: the current leader.
class DraftPlanner {
 public:
  explicit DraftPlanner(const DraftPolicy& policy) : policy_(policy) {}

  [[nodiscard]] bool active() const noexcept { return policy_.now() == DraftPolicy::Kind::kAuto; }
  [[nodiscard]] double now() const;
  /// Whether a step of these slices may have drafts. May throw std::bad_alloc.
  bool begin(std::span<const StepPlan::Slice> slices);
  /// Lowers the number of draft rows of the slices. The upper bound is the rows in their trees or,
  /// where these are empty, `max_proposed`. May throw std::bad_alloc.
  void limit(std::span<StepPlan::Slice> slices, int32_t max_proposed);
  /// Seconds spent on lookups and planning.
  void note_looking(double seconds) noexcept;
  /// Seconds spent on proposals; the longest draft had `depth` tokens.
  void note_proposing(int32_t depth, double seconds) noexcept;
  /// The pass is over and its results were distributed. It had `rows` rows, none of them of
  /// prompts.
  void end(int32_t rows) noexcept;

  /// Steps without drafts before one tries some: at first, and at most.
  static constexpr int32_t kFirstProbe = 16;
  static constexpr int32_t kLastProbe = 1024;
  static constexpr int32_t kProbeRows = 4;
  /// Steps with drafts before one is plain: at first, and at most.
  static constexpr int32_t kFirstPlain = 4;
  static constexpr int32_t kPlainAfter = 64;
  /// Drafts must promise at least this many times the tokens per second of a plain step; measured
  /// times are no more accurate.
  static constexpr double kMargin = 1.02;
  /// The same for steps of several sequences: those with more accepted drafts end sooner, and the
  /// remaining steps have fewer sequences but take nearly as long.
  static constexpr double kMarginTogether = 1.08;
  /// Sessions that return later than this many times the duration of their step were idle.
  static constexpr double kIdle = 4.0;

 private:
  struct Candidate {
    StepPlan::Slice* slice;
    bool proposes;        // lookups found nothing for it
    int32_t rows = 0;     // rows taken so far
    double chance = 1.0;  // probability that the next row is accepted
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
  double proposing_ = 0;        // seconds of a proposal per token of depth
  DraftAcceptance acceptance_;  // over all sequences
  DraftLedger ledger_;
  int32_t quiet_ = 0;  // steps since drafts were last used when offered
  int32_t busy_ = 0;   // steps since the last plain step
  int32_t plain_after_ = kFirstPlain;
  int32_t probe_after_ = kFirstProbe;

  // The current step.
  int32_t rows_ = 0;    // rows without drafts
  int32_t looked_ = 0;  // rows with drafts after its end; 0: not ended, or settled
  size_t who_ = 0;      // hash of its sequences
  double begin_ = 0;
  double end_ = 0;
  double spent_ = 0;  // seconds spent on lookups and proposals
  std::vector<Candidate> candidates_;
  std::vector<Candidate*> order_;  // the order in which rows were taken
};

}  // namespace gen::generate
