// SPDX-License-Identifier: Apache-2.0
// Admission: who is in a step, and whose blocks it takes. Where sequences share a pool of blocks
// and it has none left, sessions that are idle give theirs up, least recently used first, whatever
// they were used for; then what waits for a call of lower priority, and among equals for a younger
// one, the last of them first (preemption). What they held is computed anew when they go on, with
// the same results. A call that younger ones of higher priority have passed over
// StepLimits::max_passed_over times is from then on before every priority. So there always is a
// first call that gets on, and each becomes it in the end; kPoolExhausted is what it gets when even
// that is not enough.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "generate/step/request_queue.h"
#include "generate/step/step_plan.h"

namespace gen::generate {

/// Threads: add() and remove() from any; the rest is the leader's. The queue's mutex guards the
/// list of what is idle, and is held inside evict().
class Admission {
 public:
  /// `queue` must outlive it.
  Admission(RequestQueue* queue, StepLimits limits) : queue_(*queue), limits_(limits) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  /// Scheduler::add and remove.
  void add(Evictable* idle);
  void remove(Evictable* idle) noexcept;

  /// Plans a step over all that wait, with the queue's mutex held; its slices are then running, in
  /// the order in which they are to be reserved. Where there is no memory for a plan the oldest
  /// request fails alone, and the step has no slices.
  void choose();
  [[nodiscard]] std::span<StepPlan::Slice> slices() noexcept { return plan_.slices; }

  /// Reserves the rows of a slice, with the mutex released; of drafts only what asks nothing of
  /// others, so the plan may be for fewer rows. False if it cannot be in the step: the request says
  /// why, and may be starved, or have been evicted before its turn came.
  bool reserve(const StepPlan::Slice& slice, SteadyClock::time_point now, cache::CachePlan* plan);
  /// Sequences whose caches were taken since this was last asked.
  [[nodiscard]] int32_t take_preempted() noexcept { return std::exchange(preempted_, 0); }

 private:
  Result<cache::CachePlan> make_room(const StepPlan::Slice& slice);
  bool evict_idle() noexcept;
  bool evict_for(const StepRequest& request) noexcept;

  RequestQueue& queue_;
  const StepLimits limits_;
  std::vector<Evictable*> idle_;
  StepPlan plan_;  // the leader's
  int32_t preempted_ = 0;
};

}  // namespace gen::generate
