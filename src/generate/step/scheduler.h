// SPDX-License-Identifier: Apache-2.0
// Scheduler: joins the steps of a generator's sessions. Each session waits in its caller's thread.
// A thread that finds no leader becomes the leader: it plans a step over all waiting requests,
// reserves cache rows, runs the model, distributes the results, and hands over once its own rows
// are done. The owner of a sequence then commits its plan in its own thread; until then the cache
// is in no queue and its session is in use, so its blocks cannot be evicted. The scheduler has no
// thread of its own. One thread may submit many requests (submit, wait_any) or only check on them
// (poll). request_queue.h has the waiting requests and the leadership, admission.h the selection
// and the blocks, step_runner.h the pass; lead() has the order of a step.
//
// Locks, in the order in which they may be taken: the queue's mutex; the mutexes of saved sessions,
// the prefix cache, a block pool. Models, engines, tracers, metrics and callers' code are never
// called with the queue's mutex held; caches are cut with it (Evictable::evict, preemption).
#pragma once

#include <cstddef>
#include <functional>
#include <cstdint>
#include <span>

#include "base/metrics.h"
#include "base/status.h"
#include "engine/trace/tracer.h"
#include "generate/step/admission.h"
#include "generate/step/request_queue.h"
#include "generate/step/step_plan.h"
#include "generate/step/step_runner.h"
#include "model/model.h"

namespace gen::generate {

/// Threads: any number of threads may call all functions; a request belongs to one at a time.
class Scheduler {
 public:
  /// `model`, `tracer` (may be null; sees each forward pass) and `metrics` must outlive the
  /// scheduler. `measure_caches` (may be null or empty) sets gauges after a step. `drafter` may be
  /// null: no request then has drafts. `policy` must outlive the scheduler and limits the drafts;
  /// null: no limit.
  Scheduler(const model::Model& model, StepLimits limits, engine::Tracer* tracer = nullptr,
            Metrics& metrics = no_metrics(),
            const std::function<void(Metrics&)>* measure_caches = nullptr,
            Drafter* drafter = nullptr, const DraftPolicy* policy = nullptr)
      : metrics_(metrics),
        queue_(limits),
        admission_(&queue_, limits),
        runner_(model, tracer, metrics, measure_caches, drafter,
                policy != nullptr ? *policy : DraftPolicy(), limits.deterministic) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Waits until a step has run rows of the request and returns its status. OK: the cache holds
  /// `taken` rows for its owner to commit, and the requested logits are written; or the request was
  /// evicted and no row has run. Otherwise nothing has changed: kCacheFull or kOutOfMemory for the
  /// reservation, kCancelled (also for a passed deadline), or the model's error. A failing request
  /// does not affect the others of its step.
  Status run(StepRequest* request);

  /// Queues a request; it must stay in place until it is done. May throw std::bad_alloc; then it is
  /// not queued.
  void submit(StepRequest* request) { queue_.submit(request, metrics_.active()); }
  /// Waits until one of the submitted requests is done, and leads if no thread does. Returns at
  /// once if there are none. Called from inside a pass of the model, where no step could run them,
  /// it ends them all with kBusy except those of the pass; false if there are no others.
  [[nodiscard]] bool wait_any(std::span<StepRequest* const> requests);
  /// Whether a submitted request is done. Its own `done` may be read only after one of these
  /// functions has returned.
  [[nodiscard]] bool is_done(const StepRequest* request) const { return queue_.is_done(request); }
  /// The same. If it is not done and no thread leads, runs one step first, unless another polled
  /// call is about to join it (RequestQueue::gives_way). Never waits for another thread.
  bool poll(StepRequest* request);
  /// Takes a request back; it is done then: kCancelled if no step has run it, otherwise with a plan
  /// to commit or drop. Waits for the step that runs it.
  void withdraw(StepRequest* request) noexcept { queue_.withdraw(request); }

  /// Registers an object that may be evicted, until remove().
  void add(Evictable* idle) { admission_.add(idle); }
  void remove(Evictable* idle) noexcept { admission_.remove(idle); }
  /// For blocks of a pool outside of steps: evicts one of them; false if there is none.
  bool free_idle() noexcept { return admission_.free_idle(); }

  /// Requests that are queued or in the current step; a snapshot.
  [[nodiscard]] size_t waiting() const { return queue_.size(); }
  /// For participants.
  [[nodiscard]] RequestQueue& queue() noexcept { return queue_; }

  /// Updates the gauges of the caches after rows of a step were committed. Any thread.
  void measure_caches() noexcept { runner_.measure_caches(); }

 private:
  void lead(RequestQueue::Lock* lock, bool patient);
  bool execute(std::span<StepPlan::Slice> slices);
  bool try_all(std::span<StepPlan::Slice> slices);
  bool attempt(std::span<const StepPlan::Slice> slices, bool* threw);

  Metrics& metrics_;
  RequestQueue queue_;
  Admission admission_;
  StepRunner runner_;
};

}  // namespace gen::generate
