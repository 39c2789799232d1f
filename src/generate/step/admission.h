// SPDX-License-Identifier: Apache-2.0
// Admission: selects the requests of a step and reserves their blocks. If sequences share a block
// pool that is exhausted, idle sessions are evicted first, least recently used first. Then waiting
// requests of lower priority are preempted, and among equal priorities younger ones, youngest
// first. Evicted tokens are evaluated again when their sequence continues, with the same results. A
// call that was passed over StepLimits::max_passed_over times by younger calls of higher priority
// goes before every priority from then on. So some call always makes progress and each call becomes
// the first eventually; kPoolExhausted means that even then the pool was too small.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "generate/step/request_queue.h"
#include "generate/step/step_plan.h"

namespace gen::generate {

/// Threads: add(), remove() and free_idle() from any thread; the rest belongs to the leader. The
/// queue's mutex guards the list of idle sessions and is held during evict().
class Admission {
 public:
  /// `queue` must outlive it.
  Admission(RequestQueue* queue, StepLimits limits) : queue_(*queue), limits_(limits) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  /// Scheduler::add and remove.
  void add(Evictable* idle);
  void remove(Evictable* idle) noexcept;

  /// Evicts the idle session that was used least recently; false if there is none. Any thread.
  bool free_idle() noexcept;

  /// Plans a step over all waiting requests, with the queue's mutex held. The requests of its
  /// slices are then running, in the order in which they are to be reserved. If there is no memory
  /// for a plan the oldest request fails alone, and the step has no slices.
  void choose();
  [[nodiscard]] std::span<StepPlan::Slice> slices() noexcept { return plan_.slices; }

  /// Reserves the rows of a slice, with the mutex released. Drafts get only blocks that need no
  /// eviction, so the plan may have fewer rows. False if the slice cannot be in the step: its
  /// request has the status, is marked as starved, or was evicted before its turn.
  bool reserve(const StepPlan::Slice& slice, SteadyClock::time_point now, cache::CachePlan* plan);
  /// Number of sequences evicted since the last call.
  [[nodiscard]] int32_t take_preempted() noexcept { return std::exchange(preempted_, 0); }

 private:
  static Status check_fits(const StepRequest& request) noexcept;
  Result<cache::CachePlan> make_room(const StepPlan::Slice& slice, SteadyClock::time_point now);
  bool yields(const StepRequest& request, int32_t lacking, SteadyClock::time_point now) noexcept;
  bool evict_idle() noexcept;
  bool evict_for(const StepRequest& request) noexcept;

  RequestQueue& queue_;
  const StepLimits limits_;
  std::vector<Evictable*> idle_;
  StepPlan plan_;                    // used by the leader
  bool reserved_for_first_ = false;  // none behind a starving request starts in this step
  int32_t preempted_ = 0;
};

}  // namespace gen::generate
