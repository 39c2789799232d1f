// SPDX-License-Identifier: Apache-2.0
// Scheduler: where the sessions of a generator meet. Each waits in its own caller's thread; whoever
// finds no leader leads: it plans a step over all that wait, reserves cache room, runs the model,
// hands out what came of it, and hands over once its own rows are done. Whoever owns a sequence
// then commits its plan in its own thread: until it does, the cache is in no queue and its session
// in use, so nobody takes its blocks. There is no thread behind it. One thread may bring many
// requests (submit, wait_any), or only look by (poll). request_queue.h has who waits and who leads,
// admission.h who is in a step and whose blocks it takes, step_runner.h the pass; the order of a
// step is here, in lead().
//
// Locks, in the order in which they may be taken: the queue's mutex; then what guards saved
// sessions, the prefix cache, a pool of blocks. No model, engine, tracer, metrics, or user's code
// is called with the queue's mutex held; caches are cut with it (Evictable::evict, preemption).
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

/// Threads: all functions from any number of threads, a request from one at a time.
class Scheduler {
 public:
  /// `model` must outlive the scheduler, and so must `tracer`, which sees each forward pass and may
  /// be null, and `metrics`. `measure_caches` (may be null, or empty) sets gauges after a step.
  /// `drafter` may be null; no request then has drafts. `policy`, which must outlive it, says how
  /// many there are; null: as many as there may be.
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

  /// Waits until a step has run rows of the request, and returns its status. When OK, the cache
  /// holds `taken` rows for its owner to commit, and their wanted logits are written (or it was
  /// evicted, and none has run); else nothing has changed: kCacheFull or kOutOfMemory for the
  /// reservation, kCancelled, also when the deadline has passed, or what the model says. A request
  /// that fails does not affect the others of its step.
  Status run(StepRequest* request);

  /// Queues a request; it stays where it is until it is done. Throws std::bad_alloc, and then it is
  /// not queued.
  void submit(StepRequest* request) { queue_.submit(request, metrics_.active()); }
  /// Waits until one of the requests, all submitted, is done; runs steps itself if no other thread
  /// does. Returns at once if there are none. Within a pass of the model, where no step could ever
  /// run them, all requests that are not part of the pass are done with kBusy: false if there are
  /// no such requests.
  [[nodiscard]] bool wait_any(std::span<StepRequest* const> requests);
  /// Whether a request that was submitted is done: its own `done` may be looked at only once one
  /// of the functions here has said so.
  [[nodiscard]] bool is_done(const StepRequest* request) const { return queue_.is_done(request); }
  /// The same; where it is not and nobody leads, runs one step first, unless another call that is
  /// polled is about to join it (RequestQueue::gives_way). Never waits for another thread.
  bool poll(StepRequest* request);
  /// Takes a request back, which is done then: kCancelled if no step has run it, else with a plan
  /// to commit or drop. Waits for the step that is running it.
  void withdraw(StepRequest* request) noexcept { queue_.withdraw(request); }

  /// Tells of something that may be evicted; until remove().
  void add(Evictable* idle) { admission_.add(idle); }
  void remove(Evictable* idle) noexcept { admission_.remove(idle); }

  /// Requests queued or in the current step; may be old by the time it is looked at.
  [[nodiscard]] size_t waiting() const { return queue_.size(); }
  /// For participants.
  [[nodiscard]] RequestQueue& queue() noexcept { return queue_; }

  /// Sets the gauges of caches anew, for who has committed what a step ran. Any thread.
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
