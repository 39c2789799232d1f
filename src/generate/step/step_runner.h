// SPDX-License-Identifier: Apache-2.0
// StepRunner: joins the rows of a step, including drafts, into one batch, runs it, and distributes
// the results to the requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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

/// Without a drafter, steps that only decode greedily run several rows of each sequence, one step
/// after another (graph::Batch::multi_steps): the best token of each row is the input of the next
/// one, so the request gets drafts that are all accepted. Keeps its scratch memory, so that a
/// decode step does not allocate. Threads: the current leader, without the queue's mutex.
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

  /// Lets the drafter add rows to the slices that may have drafts. Failures leave them without.
  void propose(std::span<StepPlan::Slice> slices) noexcept;
  /// Removes the drafts of the slice.
  static void drop_drafts(StepPlan::Slice* slice) noexcept;

  /// True if a drafter adds rows; otherwise extra rows belong to a run of several steps.
  [[nodiscard]] bool drafts() const noexcept { return drafter_ != nullptr; }

  /// Clears the batch and reserves memory for these slices. May throw std::bad_alloc.
  void begin(std::span<const StepPlan::Slice> slices);
  /// Adds the rows of a slice that `plan` has reserved.
  void add(const StepPlan::Slice& slice, const cache::CachePlan& plan) noexcept;
  [[nodiscard]] std::span<const StepPlan::Slice> slices() const noexcept { return slices_; }
  /// Runs the batch. Afterwards every request has its status; if it is OK also its plan, whose rows
  /// are in the cache but uncommitted, and the results of its rows. May throw before anything has
  /// changed.
  void run();

  /// Reports the metrics of a step: its slices, its start, the requests left out, and the
  /// evictions.
  void measure(std::span<const StepPlan::Slice> slices, SteadyClock::time_point begin,
               SteadyClock::time_point end, size_t left_out, int32_t preempted) noexcept;
  /// Sets the gauges of shared caches, unless another thread is about to. Any thread.
  void measure_caches() noexcept;

 private:
  Status forward();
  /// Makes room for the hidden states that the drafter observes.
  void place_taps(graph::Batch* batch);
  /// Shows the drafter the rows that have run.
  void observe() noexcept;
  /// Numbers the mixes of the sequences, and makes a table of them unless the last step's has them.
  Status number_adapters();
  static Status during(void* self) noexcept;
  void hand_out() noexcept;
  void hand_out_steps() noexcept;
  void add_job(const StepPlan::Slice& slice);
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
  bool timed_ = false;  // the planner times the step
  const bool deterministic_;

  std::vector<DraftJob*> jobs_;
  std::vector<StepPlan::Slice> slices_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> parents_;  // empty while no request has any
  std::vector<uint8_t> wants_;
  std::vector<graph::BatchSequence> sequences_;
  std::vector<uint64_t> mixes_;  // identities of those in adapters_, by number
  std::shared_ptr<const graph::AdapterTable> adapters_;  // null: the last step had none
  StepResults results_;
  std::vector<float> hidden_;  // [taps, rows, D] for the drafter
  std::vector<graph::Tap> taps_;
  std::vector<const float*> features_;  // by sequence and tap
  std::vector<ObservedRows> observed_;
  int32_t multi_steps_ = 0;    // steps per sequence; 0: one step, with any number of rows
  double step_seconds_ = 0.0;  // of a step of the last run, or of one that could be in a run
};

}  // namespace gen::generate
