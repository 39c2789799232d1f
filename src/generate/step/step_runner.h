// SPDX-License-Identifier: Apache-2.0
// StepRunner: the rows of a step as one batch, drafts among them, the pass over them, and what each
// request gets of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "engine/trace/tracer.h"
#include "generate/draft/drafter.h"
#include "generate/step/draft_planner.h"
#include "generate/step/step_plan.h"
#include "generate/step/step_results.h"
#include "model/model.h"

namespace gen::generate {

/// Without a drafter, steps of decode tokens alone whose best is wanted run several rows of each
/// sequence, one step after another (graph::Batch::multi_steps): what each row found best becomes
/// the guess that the next one is of, so a request gets drafts that are all right. Keeps its
/// scratch, so that a decode step allocates nothing. Threads: the leader of the moment, which does
/// not hold the queue's mutex.
class StepRunner {
 public:
  /// As Scheduler.
  StepRunner(const model::Model& model, engine::Tracer* tracer, Metrics& metrics,
             const std::function<void(Metrics&)>* measure_caches, Drafter* drafter,
             const DraftPolicy& policy, bool deterministic)
      : model_(model),
        tracer_(tracer),
        metrics_(metrics),
        measure_caches_(measure_caches),
        drafter_(drafter),
        planner_(policy),
        deterministic_(deterministic),
        results_(static_cast<size_t>(model.traits().vocab_size)) {}
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  /// Has the drafter add rows to the slices that may have some. What it cannot do there is without.
  void propose(std::span<StepPlan::Slice> slices) noexcept;
  /// Leaves the slice its token alone.
  static void drop_drafts(StepPlan::Slice* slice) noexcept;

  /// Whether rows are guessed by a drafter; else those of several steps are no guesses.
  [[nodiscard]] bool drafts() const noexcept { return drafter_ != nullptr; }

  /// Empties the batch and makes room for these slices. May throw std::bad_alloc.
  void begin(std::span<const StepPlan::Slice> slices);
  /// Adds as many rows of a slice as `plan` was reserved for.
  void add(const StepPlan::Slice& slice, const cache::CachePlan& plan) noexcept;
  [[nodiscard]] std::span<const StepPlan::Slice> slices() const noexcept { return slices_; }
  /// Runs the batch. Every request of it then has its status, and where that is OK its plan, whose
  /// rows the cache holds uncommitted, and what its rows wanted. May throw, before anything has
  /// changed.
  void run();

  /// What a step tells of itself: its slices, when it ran, how many requests it left out, and how
  /// many caches were taken for it.
  void measure(std::span<const StepPlan::Slice> slices, SteadyClock::time_point begin,
               SteadyClock::time_point end, size_t left_out, int32_t preempted) noexcept;
  /// Sets the gauges of what sessions have in common, unless another thread is about to. Any
  /// thread.
  void measure_caches() noexcept;

 private:
  Status forward();
  static Status during(void* self) noexcept;
  void hand_out() noexcept;
  void hand_out_steps() noexcept;
  bool gather_jobs(std::span<const StepPlan::Slice> slices);
  void ask_for_the_rest(std::span<const StepPlan::Slice> slices);
  void add_guesses(StepPlan::Slice* slice);
  void reserve(std::span<const StepPlan::Slice> slices);
  void count_failures() noexcept;
  void add_steps(std::span<StepPlan::Slice> slices);
  void even_steps() noexcept;
  [[nodiscard]] bool only_decodes() const noexcept;
  [[nodiscard]] int32_t steps_in_time() const noexcept;

  const model::Model& model_;
  engine::Tracer* const tracer_;
  Metrics& metrics_;
  const std::function<void(Metrics&)>* const measure_caches_;
  std::mutex measuring_;

  Drafter* const drafter_;
  DraftPlanner planner_;
  bool timed_ = false;  // the step, for the planner
  const bool deterministic_;

  std::vector<DraftJob*> jobs_;
  std::vector<StepPlan::Slice> slices_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> parents_;  // empty as long as no request has some
  std::vector<uint8_t> wants_;
  std::vector<graph::BatchSequence> sequences_;
  StepResults results_;
  int32_t multi_steps_ = 0;    // of each sequence; 0: one step, however many rows
  double step_seconds_ = 0.0;  // of one of the last several, or that could be one of them
};

}  // namespace gen::generate
