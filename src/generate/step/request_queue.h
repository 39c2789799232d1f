// SPDX-License-Identifier: Apache-2.0
// RequestQueue: the requests that wait for a step, who leads the next one, and who is expected
// back. Its mutex is the one that callers of a scheduler meet at. Read next: scheduler.h, which has
// the order of a step.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "generate/step/step_plan.h"

namespace gen::generate {

class RequestQueue;

/// A call that brings request after request. Between two of them, while its caller samples, the
/// leader waits a moment for those that are usually quick, so that sessions which met in one step
/// meet in the next.
/// Threads: as its requests; guarded by the queue.
class Participant {
 public:
  /// `queue` must outlive it. May throw std::bad_alloc.
  explicit Participant(RequestQueue* queue);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

 private:
  friend class RequestQueue;
  RequestQueue& queue_;
  uint64_t seniority_ = 0;        // smaller is older
  int32_t passed_over_ = 0;       // times that younger calls of higher priority had blocks first
  bool holds_ = false;            // has rows in its cache
  SteadyClock::time_point left_;  // when its last step ended
  SteadyClock::duration absence_{0};  // how long it stayed away then
  bool saying_ = false;               // note_said(), until its next request
  uint64_t heard_ = 0;                // what others had said when it last gave way
};

/// Threads: the functions of the first part from any number of threads, a request from one at a
/// time. Those of the second part are the leader's, and all but wait() are called with the mutex
/// held.
class RequestQueue {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit RequestQueue(const StepLimits& limits) : limits_(limits) {}
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  [[nodiscard]] Lock lock() const { return Lock(mutex_); }
  /// Scheduler::submit; `timed` notes when.
  void submit(StepRequest* request, bool timed);
  /// Scheduler::withdraw.
  void withdraw(StepRequest* request) noexcept;
  [[nodiscard]] bool is_done(const StepRequest* request) const;
  /// A call that is polled has given a token; `more`: it has others to give before its next
  /// request.
  void note_said(Participant* participant, bool more) noexcept;
  /// It gives no more, however it has ended.
  void note_ended(Participant* participant) noexcept;
  [[nodiscard]] size_t size() const;

  /// What a thread that waits for one of its requests has come to.
  enum class Turn : int32_t {
    kDone,     // one of them is done
    kRefused,  // none of them is, nor can be: the thread is in the middle of a step
    kLead,     // nobody leads
  };
  /// Waits, with the mutex held, until there is something to do.
  Turn wait(Lock* lock, std::span<StepRequest* const> requests);

  // The leader's.
  [[nodiscard]] bool led() const noexcept { return led_; }
  void take_lead() noexcept;
  /// Ends the leadership and tells all who wait.
  void leave_lead() noexcept;
  /// Waits for those of the last step that are about to come back; who fails to is waited for no
  /// more until it has been quick again.
  void gather(Lock* lock);
  /// Whether who polls for `request` leaves the step to a later poll: there are calls with tokens
  /// to give, and one has given some since the last time. So sessions that one thread polls in turn
  /// stay together where some have guessed right; apart their steps would bring less. Each token
  /// given puts a request off once, so nobody waits for a call that is not polled.
  [[nodiscard]] bool gives_way(const StepRequest& request) noexcept;
  /// Ends requests whose caller has given up on them, whether or not their turn has come.
  void drop_ended() noexcept;
  /// Oldest first.
  [[nodiscard]] std::span<StepRequest* const> waiting() const noexcept { return waiting_; }
  /// Ends the oldest with a failure.
  void fail_first(Status failure) noexcept;
  /// Requests leave the queue when their step is over, so that nothing is lost if planning it
  /// fails. `took` is what the step of these slices took.
  void end_step(std::span<const StepPlan::Slice> slices, SteadyClock::duration took) noexcept;
  /// The step of these slices ran nothing. If that is because the pool has no block for anybody, it
  /// is up to calls that are between two steps: they come back soon, or the first request fails.
  /// The step began at `tried`; who came back since may have blocks to give. Waits only if
  /// `patient`.
  void relieve(Lock* lock, std::span<const StepPlan::Slice> slices, bool patient,
               SteadyClock::time_point tried);
  /// Whose blocks `request` may have next, the last of all who are behind it; null if nobody has
  /// any to give.
  [[nodiscard]] StepRequest* last_holder_behind(const StepRequest& request) const noexcept;
  /// The cache of `victim` has been emptied for `request`.
  void note_evicted(StepRequest* victim, const StepRequest& request) noexcept;
  /// For a leader who waits for blocks: who holds them may have changed.
  void note_change() noexcept;
  /// The order in which calls have blocks of a pool: who is behind gives way to who is before.
  [[nodiscard]] bool comes_before(const StepRequest& a, const StepRequest& b) const noexcept;

 private:
  friend class Participant;

  static uint64_t seniority(const StepRequest& request) noexcept;
  static bool is_urgent_newcomer(const StepRequest& a, const StepRequest& b) noexcept;
  void remove(StepRequest* request) noexcept;
  void note_blocks_of(const StepRequest& request) noexcept;
  void expect_no_more(const Participant* participant) noexcept;
  void set_saying(Participant* participant, bool saying) noexcept;
  void refuse(std::span<StepRequest* const> requests) noexcept;

  const StepLimits limits_;
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
  size_t saying_ = 0;                         // participants that give guessed tokens
  uint64_t said_ = 0;                         // tokens that they gave
  std::vector<const Participant*> expected_;  // were in the last step and will soon be back
  SteadyClock::duration patience_{0};         // how long a step waits for them
};

/// OK unless the request has been cancelled or is too late.
Status check_wanted(const StepRequest& request, SteadyClock::time_point now);

}  // namespace gen::generate
