// SPDX-License-Identifier: Apache-2.0
// See request_queue.h.
#include "generate/step/request_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gen::generate {
namespace {

// How long a leader waits for a call that could free blocks before it tries again.
constexpr SteadyClock::duration kRelief = std::chrono::milliseconds(5);

}  // namespace

// OK unless the request was cancelled or its deadline has passed.
Status check_wanted(const StepRequest& request, SteadyClock::time_point now) {
  if (request.cancel != nullptr && request.cancel->raised()) {
    return error(Code::kCancelled, "cancelled at position %d", request.first_position);
  }
  if (request.urgency.deadline <= now) {
    return error(Code::kCancelled, "the deadline has passed at position %d",
                 request.first_position);
  }
  return {};
}

Participant::Participant(RequestQueue* queue) : queue_(*queue) {
  const RequestQueue::Lock lock = queue_.lock();
  queue_.expected_.reserve(queue_.participants_ + 1);
  ++queue_.participants_;
  seniority_ = ++queue_.seniorities_;
}

Participant::~Participant() {
  const RequestQueue::Lock lock = queue_.lock();
  --queue_.participants_;
  queue_.expect_no_more(this);
  queue_.set_saying(this, false);
  queue_.note_change();
}

BlockHolder::BlockHolder(RequestQueue* queue) noexcept : queue_(*queue) {
  const RequestQueue::Lock lock = queue_.lock();
  ++queue_.holders_;
}

BlockHolder::~BlockHolder() {
  const RequestQueue::Lock lock = queue_.lock();
  --queue_.holders_;
  queue_.note_change();
}

void RequestQueue::note_change() noexcept {
  changed_at_ = SteadyClock::now();
  if (relieving_) arrivals_.notify_one();
}

uint64_t RequestQueue::seniority(const StepRequest& request) noexcept {
  return request.participant != nullptr ? request.participant->seniority_ : UINT64_MAX;
}

bool RequestQueue::comes_before(const StepRequest& a, const StepRequest& b) const noexcept {
  const auto rank = [this](const StepRequest& request) {
    const Participant* const call = request.participant;
    return call != nullptr && call->passed_over_ >= limits_.max_passed_over
               ? std::numeric_limits<int32_t>::max()
               : request.urgency.priority;
  };
  const int32_t rank_a = rank(a);
  const int32_t rank_b = rank(b);
  return rank_a != rank_b ? rank_a > rank_b : seniority(a) < seniority(b);
}

// Whether `a` is younger than `b` and ahead of it by priority only.
bool RequestQueue::is_urgent_newcomer(const StepRequest& a, const StepRequest& b) noexcept {
  return b.participant != nullptr && a.urgency.priority > b.urgency.priority &&
         seniority(a) > seniority(b);
}

void RequestQueue::submit(StepRequest* request, bool timed) {
  const Lock lock(mutex_);
  waiting_.push_back(request);
  request->done = false;
  request->running = false;
  request->starved = false;
  request->evicted = false;
  request->passed_over = 0;
  if (timed) request->submitted = SteadyClock::now();
  request->taken = 0;
  request->status = Status();
  Participant* const participant = request->participant;
  if (participant == nullptr) return;
  if (participant->left_ != SteadyClock::time_point()) {
    participant->absence_ = SteadyClock::now() - participant->left_;
  }
  expect_no_more(participant);
  set_saying(participant, false);
  note_change();
}

void RequestQueue::set_saying(Participant* participant, bool saying) noexcept {
  if (saying == participant->saying_) return;
  participant->saying_ = saying;
  saying ? ++saying_ : --saying_;
}

void RequestQueue::note_said(Participant* participant, bool more) noexcept {
  const Lock lock(mutex_);
  if (more) set_saying(participant, true);
  if (participant->saying_) ++said_;
}

void RequestQueue::note_ended(Participant* participant) noexcept {
  const Lock lock(mutex_);
  set_saying(participant, false);
  expect_no_more(participant);
}

bool RequestQueue::gives_way(const StepRequest& request) noexcept {
  if (saying_ == 0 || request.participant == nullptr) return false;
  const uint64_t heard = std::exchange(request.participant->heard_, said_ + 1);
  return heard != said_ + 1;
}

RequestQueue::Turn RequestQueue::wait(Lock* lock, std::span<StepRequest* const> requests) {
  const auto any_done = [&] {
    return std::any_of(requests.begin(), requests.end(),
                       [](const StepRequest* request) { return request->done; });
  };
  while (!any_done()) {
    if (!led_) return Turn::kLead;
    if (leader_ == std::this_thread::get_id()) {
      refuse(requests);
      return any_done() ? Turn::kDone : Turn::kRefused;
    }
    changed_.wait(*lock);
  }
  return Turn::kDone;
}

void RequestQueue::withdraw(StepRequest* request) noexcept {
  Lock lock(mutex_);
  while (request->running) changed_.wait(lock);
  if (request->done) return;
  remove(request);
  request->status = Status(Code::kCancelled, "taken back");
  request->done = true;
}

bool RequestQueue::is_done(const StepRequest* request) const {
  const Lock lock(mutex_);
  return request->done;
}

size_t RequestQueue::size() const {
  const Lock lock(mutex_);
  return waiting_.size();
}

void RequestQueue::refuse(std::span<StepRequest* const> requests) noexcept {
  for (StepRequest* request : requests) {
    if (request->done || request->running) continue;
    remove(request);
    request->status = Status(Code::kBusy, "the model's own forward pass cannot wait for another");
    request->done = true;
  }
}

void RequestQueue::expect_no_more(const Participant* participant) noexcept {
  const auto found = std::find(expected_.begin(), expected_.end(), participant);
  if (found == expected_.end()) return;
  expected_.erase(found);
  if (expected_.empty()) arrivals_.notify_one();
}

void RequestQueue::remove(StepRequest* request) noexcept {
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
}

void RequestQueue::take_lead() noexcept {
  led_ = true;
  leader_ = std::this_thread::get_id();
}

void RequestQueue::leave_lead() noexcept {
  led_ = false;
  changed_.notify_all();
}

void RequestQueue::gather(Lock* lock) {
  if (expected_.empty()) return;
  arrivals_.wait_for(*lock, patience_, [this] { return expected_.empty(); });
  expected_.clear();
}

void RequestQueue::drop_ended() noexcept {
  const SteadyClock::time_point now = SteadyClock::now();
  const auto ended = [&](StepRequest* request) {
    Status status = check_wanted(*request, now);
    if (status.ok()) return false;  // a starved request keeps its status
    request->status = std::move(status);
    request->done = true;
    return true;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), ended), waiting_.end());
}

void RequestQueue::fail_first(Status failure) noexcept {
  waiting_.front()->status = std::move(failure);
  waiting_.front()->done = true;
  waiting_.erase(waiting_.begin());
}

void RequestQueue::relieve(Lock* lock, std::span<const StepPlan::Slice> slices, bool patient,
                           SteadyClock::time_point tried) {
  const auto before = [this](const StepRequest* a, const StepRequest* b) {
    return comes_before(*a, *b);
  };
  const auto first = std::min_element(waiting_.begin(), waiting_.end(), before);
  if (first == waiting_.end()) return;
  StepRequest* const request = *first;
  const bool tried_it =
      std::any_of(slices.begin(), slices.end(),
                  [request](const StepPlan::Slice& slice) { return slice.request == request; });
  if (!tried_it) {  // guaranteed to be in the next step, with the right to evict all others
    request->passed_over = limits_.max_passed_over;
    std::rotate(waiting_.begin(), first, first + 1);
    return;
  }
  const auto queued = static_cast<size_t>(
      std::count_if(waiting_.begin(), waiting_.end(),
                    [](const StepRequest* one) { return one->participant != nullptr; }));
  const bool quiet =
      tried - std::max(request->starved_since, changed_at_) >= limits_.least_starving;
  const bool hopeless = queued == participants_ + holders_ && quiet;
  const bool changed = changed_at_ >= tried;  // so it is tried again, however long it has waited
  if (changed || (!hopeless && tried - request->starved_since < limits_.max_starving)) {
    if (!patient || changed) return;
    changed_.notify_all();  // those that the step has ended may be the ones with the blocks
    relieving_ = true;
    arrivals_.wait_for(*lock, kRelief);
    relieving_ = false;
    return;
  }
  request->done = true;
  waiting_.erase(first);
}

void RequestQueue::end_step(std::span<const StepPlan::Slice> slices,
                            SteadyClock::duration took) noexcept {
  patience_ = std::clamp(took / 4, limits_.least_patience, limits_.max_patience);
  const SteadyClock::time_point now = SteadyClock::now();
  const StepRequest* ahead = nullptr;  // the first that made progress
  for (const StepPlan::Slice& slice : slices) {
    StepRequest* const request = slice.request;
    request->running = false;
    if (request->starved) continue;  // it stays in the queue
    if (request->taken > 0) {
      if (ahead == nullptr || comes_before(*request, *ahead)) ahead = request;
      note_blocks_of(*request);
    }
    remove(request);
    request->done = true;
    Participant* const participant = request->participant;
    if (participant == nullptr) continue;
    participant->left_ = now;
    if (participant->absence_ <= patience_) expected_.push_back(participant);
  }
  // A call ahead frees nothing, but it makes progress and ends; one behind has been evicted
  // already.
  for (StepRequest* request : waiting_) {
    if (request->starved && ahead != nullptr && comes_before(*ahead, *request)) {
      request->starved_since = now;
    }
  }
}

// The call has its first blocks: calls that wait for blocks were passed over.
void RequestQueue::note_blocks_of(const StepRequest& request) noexcept {
  if (request.participant == nullptr || request.participant->holds_) return;
  request.participant->holds_ = true;
  for (StepRequest* other : waiting_) {
    if (other->starved && is_urgent_newcomer(request, *other)) ++other->participant->passed_over_;
  }
}

// Requests are reserved in the order of comes_before, so a later one of this step is not reserved
// yet.
bool RequestQueue::gives_to(const StepRequest& request, const StepRequest& other) const noexcept {
  return !other.evicted && other.cache->length() > 0 && other.cache->traits().pooled &&
         comes_before(request, other);
}

int64_t RequestQueue::held_behind(const StepRequest& request) const noexcept {
  int64_t held = 0;
  for (const StepRequest* other : waiting_) {
    if (gives_to(request, *other)) held += other->cache->most_freed();
  }
  return held;
}

StepRequest* RequestQueue::last_holder_behind(const StepRequest& request) const noexcept {
  StepRequest* last = nullptr;
  for (StepRequest* other : waiting_) {
    if (!gives_to(request, *other)) continue;
    if (last == nullptr || comes_before(*last, *other)) last = other;
  }
  return last;
}

void RequestQueue::note_evicted(StepRequest* victim, const StepRequest& request) noexcept {
  if (is_urgent_newcomer(request, *victim)) ++victim->participant->passed_over_;
  if (victim->participant != nullptr) victim->participant->holds_ = false;
  victim->status = Status();
  victim->taken = 0;
  victim->evicted = true;
  victim->starved = false;
  if (victim->running) return;
  remove(victim);
  victim->done = true;
}

}  // namespace gen::generate
