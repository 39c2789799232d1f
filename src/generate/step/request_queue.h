// SPDX-License-Identifier: Apache-2.0
// RequestQueue: requests that wait for a step, the leadership of the next step, and the
// participants expected back. All callers of a scheduler share its mutex. Read next: scheduler.h,
// which has the order of a step.
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

/// A call that submits one request after another. Between two requests, while its caller samples,
/// the leader waits a moment for participants that are usually quick, so that sessions that shared
/// a step share the next one. Threads: as its requests; guarded by the queue.
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
  int32_t passed_over_ = 0;       // times that younger calls of higher priority got blocks first
  bool holds_ = false;            // it has rows in its cache
  SteadyClock::time_point left_;  // when its last step ended
  SteadyClock::duration absence_{0};  // time from its last step to its next request
  bool saying_ = false;               // from note_said() to its next request
  uint64_t heard_ = 0;                // value of said_ when it last gave way
};

/// A call that holds a session and asks for no step, such as one that saves it: who waits for
/// blocks waits for its end, since an idle session gives its blocks. Make it before the session is
/// held, so that it ends when the session is free again. Threads: one.
class BlockHolder {
 public:
  /// `queue` must outlive it.
  explicit BlockHolder(RequestQueue* queue) noexcept;
  ~BlockHolder();
  BlockHolder(const BlockHolder&) = delete;
  BlockHolder& operator=(const BlockHolder&) = delete;

 private:
  RequestQueue& queue_;
};

/// Threads: any thread may call the functions of the first part; a request belongs to one thread at
/// a time. The second part is the leader's; all of it except wait() is called with the mutex held.
class RequestQueue {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit RequestQueue(const StepLimits& limits) : limits_(limits) {}
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  [[nodiscard]] Lock lock() const { return Lock(mutex_); }
  /// Scheduler::submit. `timed` records the time.
  void submit(StepRequest* request, bool timed);
  /// Scheduler::withdraw.
  void withdraw(StepRequest* request) noexcept;
  [[nodiscard]] bool is_done(const StepRequest* request) const;
  /// A polled call has emitted a token; `more`: it will emit others before its next request.
  void note_said(Participant* participant, bool more) noexcept;
  /// The call emits no more tokens, however it ended.
  void note_ended(Participant* participant) noexcept;
  [[nodiscard]] size_t size() const;

  /// Why a waiting thread returns.
  enum class Turn : int32_t {
    kDone,     // one of its requests is done
    kRefused,  // none can ever be done: this thread is inside a step
    kLead,     // no thread leads
  };
  /// Waits until there is something to do. The mutex is held.
  Turn wait(Lock* lock, std::span<StepRequest* const> requests);

  // Functions of the leader.
  [[nodiscard]] bool led() const noexcept { return led_; }
  void take_lead() noexcept;
  /// Ends the leadership and wakes all waiting threads.
  void leave_lead() noexcept;
  /// Waits for participants of the last step that are expected back. One that does not come is not
  /// waited for until it has been quick again.
  void gather(Lock* lock);
  /// Whether the poll of `request` leaves the step to a later poll: other calls still have tokens
  /// to emit, and one has emitted some since the last time. This keeps sessions that one thread
  /// polls in turn in common steps when drafts of some were accepted. Each emitted token delays a
  /// request once, so a call that is not polled delays nobody.
  [[nodiscard]] bool gives_way(const StepRequest& request) noexcept;
  /// Ends requests that were cancelled or are past their deadline.
  void drop_ended() noexcept;
  /// Oldest first.
  [[nodiscard]] std::span<StepRequest* const> waiting() const noexcept { return waiting_; }
  /// Fails the oldest request.
  void fail_first(Status failure) noexcept;
  /// Removes finished requests from the queue. It happens after the step, so that nothing is lost
  /// if planning fails. `took` is the duration of the step.
  void end_step(std::span<const StepPlan::Slice> slices, SteadyClock::duration took) noexcept;
  /// Called when the step of these slices ran nothing. If the pool has no block for any of them,
  /// only calls between two steps can free some: this waits for them, or fails the first request.
  /// The step began at `tried`; calls that returned since may have freed blocks. Waits only if
  /// `patient`.
  void relieve(Lock* lock, std::span<const StepPlan::Slice> slices, bool patient,
               SteadyClock::time_point tried);
  /// The request that is evicted next for `request`, the last one behind it that holds blocks; null
  /// if there is none.
  [[nodiscard]] StepRequest* last_holder_behind(const StepRequest& request) const noexcept;
  /// At most so many positions more are free for `request` once all behind it are evicted.
  [[nodiscard]] int64_t held_behind(const StepRequest& request) const noexcept;
  /// The cache of `victim` was emptied for `request`.
  void note_evicted(StepRequest* victim, const StepRequest& request) noexcept;
  /// Wakes a leader that waits for blocks: their holders may have changed.
  void note_change() noexcept;
  /// The order in which calls get blocks of a pool: later ones give way to earlier ones.
  [[nodiscard]] bool comes_before(const StepRequest& a, const StepRequest& b) const noexcept;

 private:
  friend class BlockHolder;
  friend class Participant;

  [[nodiscard]] bool gives_to(const StepRequest& request, const StepRequest& other) const noexcept;
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
  bool relieving_ = false;              // the leader waits for any request
  SteadyClock::time_point changed_at_;  // last return of a call, or end of a call or session
  std::thread::id leader_;              // valid while led_
  size_t participants_ = 0;
  size_t holders_ = 0;  // BlockHolder
  uint64_t seniorities_ = 0;
  size_t saying_ = 0;                         // participants that still emit accepted draft tokens
  uint64_t said_ = 0;                         // tokens emitted by them
  std::vector<const Participant*> expected_;  // were in the last step, should soon return
  SteadyClock::duration patience_{0};         // how long a step waits for them
};

/// OK unless the request was cancelled or its deadline has passed.
Status check_wanted(const StepRequest& request, SteadyClock::time_point now);

}  // namespace gen::generate
