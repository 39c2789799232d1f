// SPDX-License-Identifier: Apache-2.0
// Scheduler: where the sessions of a generator meet. Each waits in its own caller's thread; whoever
// finds no leader leads: it plans a step over all that wait, reserves cache room, runs the model,
// commits or drops the reservations, and hands over once its own rows are done. There is no thread
// behind it. One thread may bring many requests (submit, wait_any), or only look by (poll).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "engine/tracer.h"
#include "generate/step_plan.h"
#include "model/model.h"

namespace gen::generate {

class Scheduler;

/// A call that brings request after request. Between two of them, while its caller samples, the
/// leader waits a moment for those that are usually quick, so that sessions which met in one step
/// meet in the next.
/// Threads: as its requests; guarded by the scheduler.
class Participant {
 public:
  /// `scheduler` must outlive it. May throw std::bad_alloc.
  explicit Participant(Scheduler* scheduler);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

 private:
  friend class Scheduler;
  Scheduler* const scheduler_;
  uint64_t seniority_ = 0;            // smaller is older
  int32_t passed_over_ = 0;           // times that younger calls of higher priority had blocks first
  bool holds_ = false;                // has rows in its cache
  SteadyClock::time_point left_;      // when its last step ended
  SteadyClock::duration absence_{0};  // how long it stayed away then
};

/// Where sequences share a pool of blocks and it has none left, sessions that are idle give theirs
/// up, least recently used first, whatever they were used for; then what waits for a call of lower
/// priority, and among equals for a younger one, the last of them first. What they held is computed
/// anew when they go on, with the same results. A call that younger ones of higher priority have
/// passed over StepLimits::most_passed_over times is from then on before every priority. So there
/// always is a first call that gets on, and each becomes it in the end; kPoolExhausted is what it
/// gets when even that is not enough.
/// Threads: all functions from any number of threads, a request from one at a time.
class Scheduler {
 public:
  /// `model` must outlive the scheduler, and so must `tracer`, which sees each forward pass and may
  /// be null, and `metrics`. `measure_caches` (may be null, or empty) sets gauges after a step.
  Scheduler(const model::Model& model, StepLimits limits, engine::Tracer* tracer = nullptr,
            Metrics& metrics = no_metrics(),
            const std::function<void(Metrics&)>* measure_caches = nullptr)
      : model_(model),
        limits_(limits),
        tracer_(tracer),
        metrics_(metrics),
        measure_caches_(measure_caches) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Waits until a step has run rows of the request, and returns its status. When OK, `taken` rows
  /// are in the cache and their wanted logits are written, else nothing has changed: kCacheFull or
  /// kOutOfMemory for the reservation, kCancelled, also when the deadline has passed, or what the
  /// model says. A request that fails does not affect the others of its step.
  Status run(StepRequest* request);

  /// Queues a request; it stays where it is until it is done. Throws std::bad_alloc, and then it is
  /// not queued.
  void submit(StepRequest* request);
  /// Waits until one of the requests, all submitted, is done; leads where nobody does. Returns at
  /// once if there are none. Within a pass of the model, where no step could ever run them, they
  /// are all done with kBusy, but for those that are part of the pass: false if there are no others.
  [[nodiscard]] bool wait_any(std::span<StepRequest* const> requests);
  /// Whether a request that was submitted is done: its own `done` may be looked at only once one
  /// of the functions here has said so.
  [[nodiscard]] bool is_done(const StepRequest* request) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return request->done;
  }
  /// The same; where it is not and nobody leads, runs one step first. Never
  /// waits for another thread.
  bool poll(StepRequest* request);
  /// Takes a request back, which is done then: kCancelled if no step has run it. Waits for the
  /// step that is running it.
  void withdraw(StepRequest* request) noexcept;

  /// Tells of something that may be evicted; until remove().
  void add(Evictable* idle);
  void remove(Evictable* idle) noexcept;

  /// Requests queued or in the current step; may be old by the time it is looked at.
  [[nodiscard]] size_t waiting() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.size();
  }

 private:
  friend class Participant;
  using Lock = std::unique_lock<std::mutex>;

  static uint64_t seniority(const StepRequest& request) noexcept;
  bool comes_before(const StepRequest& a, const StepRequest& b) const noexcept;
  static bool is_urgent_newcomer(const StepRequest& a, const StepRequest& b) noexcept;
  void lead(Lock* lock, bool patient);
  void gather(Lock* lock);
  void drop_ended() noexcept;
  void end_step(SteadyClock::duration took) noexcept;
  void relieve(Lock* lock, bool patient, SteadyClock::time_point tried);
  void note_change() noexcept;
  void note_blocks_of(const StepRequest& request) noexcept;
  void expect_no_more(const Participant* participant) noexcept;
  void refuse(std::span<StepRequest* const> requests) noexcept;

  void measure(SteadyClock::time_point begin, SteadyClock::time_point end, size_t waiting) noexcept;
  void execute();
  void attempt(std::span<const StepPlan::Part> parts);
  void reserve(std::span<const StepPlan::Part> parts);
  Result<cache::CachePlan> make_room(const StepPlan::Part& part);
  bool evict_idle() noexcept;
  bool evict_for(const StepRequest& request) noexcept;
  Status forward();
  void commit() noexcept;

  const model::Model& model_;
  const StepLimits limits_;
  engine::Tracer* const tracer_;  // called by the leader
  Metrics& metrics_;              // called by the leader while it does not hold the mutex
  const std::function<void(Metrics&)>* const measure_caches_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;    // a step is over
  std::condition_variable arrivals_;   // nobody is expected any more
  std::vector<StepRequest*> waiting_;  // oldest first
  bool led_ = false;
  bool relieving_ = false;              // the leader waits for anybody to come
  SteadyClock::time_point changed_at_;  // when a call last came back, or one or a session went
  std::thread::id leader_;              // while led_
  size_t participants_ = 0;
  uint64_t seniorities_ = 0;
  std::vector<Evictable*> idle_;
  std::vector<const Participant*> expected_;  // were in the last step and will soon be back
  SteadyClock::duration patience_{0};         // how long a step waits for them

  int32_t preempted_ = 0;  // sequences that this step took the cache of; the leader's

  // Scratch of the leader, kept so that a decode step allocates nothing.
  StepPlan plan_;
  std::vector<StepPlan::Part> reserved_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<uint8_t> wants_;
  std::vector<graph::BatchSequence> sequences_;
  std::vector<float> logits_;  // [wanted_, V], for steps of several sequences
  size_t wanted_ = 0;
  bool progress_ = false;  // the step has run a pass, or there was none to run
};

}  // namespace gen::generate
