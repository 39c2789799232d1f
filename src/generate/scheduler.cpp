// SPDX-License-Identifier: Apache-2.0
// See scheduler.h. The scratch members belong to the leader of the moment: `led_` is what guards
// them, and it changes hands under the mutex.
#include "generate/scheduler.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "generate/metric_names.h"

namespace gen::generate {
namespace {

// A step waits for its sessions to come back for at most a quarter of what the last one took: that
// is soon won back by running them together.
constexpr SteadyClock::duration kLeastPatience = std::chrono::microseconds(50);
constexpr SteadyClock::duration kMostPatience = std::chrono::milliseconds(5);
// How long the oldest request waits for blocks that only calls between two steps could give back,
// since an older one of them got on, and how long where there are none: a session may be in use for
// a moment, or just be freed.
constexpr SteadyClock::duration kMostStarving = std::chrono::seconds(1);
constexpr SteadyClock::duration kLeastStarving = std::chrono::milliseconds(20);

size_t wanted_rows(const StepPlan::Part& part) noexcept {
  const auto wants = part.request->wants_logits.first(static_cast<size_t>(part.rows));
  return static_cast<size_t>(
      std::count_if(wants.begin(), wants.end(), [](uint8_t wanted) { return wanted != 0; }));
}

// OK unless the request has been cancelled or is too late.
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

}  // namespace

Participant::Participant(Scheduler* scheduler) : scheduler_(scheduler) {
  const std::lock_guard<std::mutex> lock(scheduler_->mutex_);
  scheduler_->expected_.reserve(scheduler_->participants_ + 1);
  ++scheduler_->participants_;
  seniority_ = ++scheduler_->seniorities_;
}

Participant::~Participant() {
  const std::lock_guard<std::mutex> lock(scheduler_->mutex_);
  --scheduler_->participants_;
  scheduler_->expect_no_more(this);
  scheduler_->note_change();
}

// For a leader who waits for blocks: who holds them may have changed.
void Scheduler::note_change() noexcept {
  changed_at_ = SteadyClock::now();
  if (relieving_) arrivals_.notify_one();
}

void Scheduler::add(Evictable* idle) {
  const Lock lock(mutex_);
  idle_.push_back(idle);
}

void Scheduler::remove(Evictable* idle) noexcept {
  const Lock lock(mutex_);
  // Blocks must not be with somebody who is going but not gone.
  (void)idle->evict();
  idle_.erase(std::find(idle_.begin(), idle_.end(), idle));
  note_change();
}

uint64_t Scheduler::seniority(const StepRequest& request) noexcept {
  return request.participant != nullptr ? request.participant->seniority_ : UINT64_MAX;
}

// The order in which calls have blocks of a pool: who is behind gives way to who is before.
bool Scheduler::comes_before(const StepRequest& a, const StepRequest& b) const noexcept {
  const auto rank = [this](const StepRequest& request) {
    const Participant* const call = request.participant;
    return call != nullptr && call->passed_over_ >= limits_.most_passed_over
               ? std::numeric_limits<int32_t>::max()
               : request.urgency.priority;
  };
  const int32_t rank_a = rank(a);
  const int32_t rank_b = rank(b);
  return rank_a != rank_b ? rank_a > rank_b : seniority(a) < seniority(b);
}

// Whether `a` would be behind `b` if it went by age.
bool Scheduler::is_urgent_newcomer(const StepRequest& a, const StepRequest& b) noexcept {
  return b.participant != nullptr && a.urgency.priority > b.urgency.priority &&
         seniority(a) > seniority(b);
}

Status Scheduler::run(StepRequest* request) {
  submit(request);
  (void)wait_any({&request, 1});  // a request that is new is done in any case
  return request->status;
}

void Scheduler::submit(StepRequest* request) {
  const Lock lock(mutex_);
  waiting_.push_back(request);
  request->done = false;
  request->running = false;
  request->starved = false;
  request->evicted = false;
  request->passed_over = 0;
  if (metrics_.active()) request->submitted = SteadyClock::now();
  request->taken = 0;
  request->status = Status();
  Participant* const participant = request->participant;
  if (participant == nullptr) return;
  if (participant->left_ != SteadyClock::time_point()) {
    participant->absence_ = SteadyClock::now() - participant->left_;
  }
  expect_no_more(participant);
  note_change();
}

bool Scheduler::wait_any(std::span<StepRequest* const> requests) {
  if (requests.empty()) return true;
  const auto any_done = [&] {
    return std::any_of(requests.begin(), requests.end(),
                       [](const StepRequest* request) { return request->done; });
  };
  Lock lock(mutex_);
  while (!any_done()) {
    if (led_ && leader_ == std::this_thread::get_id()) {
      refuse(requests);
      return any_done();
    } else if (led_) {
      changed_.wait(lock);
    } else {
      lead(&lock, true);
    }
  }
  return true;
}

bool Scheduler::poll(StepRequest* request) {
  Lock lock(mutex_);
  if (!request->done && !led_) lead(&lock, false);
  return request->done;
}

void Scheduler::withdraw(StepRequest* request) noexcept {
  Lock lock(mutex_);
  while (request->running) changed_.wait(lock);
  if (request->done) return;
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
  request->status = Status(Code::kCancelled, "taken back");
  request->done = true;
}

void Scheduler::refuse(std::span<StepRequest* const> requests) noexcept {
  for (StepRequest* request : requests) {
    if (request->done || request->running) continue;
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
    request->status = Status(Code::kBusy, "the model's own forward pass cannot wait for another");
    request->done = true;
  }
}

void Scheduler::expect_no_more(const Participant* participant) noexcept {
  const auto found = std::find(expected_.begin(), expected_.end(), participant);
  if (found == expected_.end()) return;
  expected_.erase(found);
  if (expected_.empty()) arrivals_.notify_one();
}

// Waits for those of the last step that are about to come back; who fails to is waited for no more
// until it has been quick again.
void Scheduler::gather(Lock* lock) {
  if (expected_.empty()) return;
  arrivals_.wait_for(*lock, patience_, [this] { return expected_.empty(); });
  expected_.clear();
}

// Ends requests whose caller has given up on them, whether or not their turn has come.
void Scheduler::drop_ended() noexcept {
  const SteadyClock::time_point now = SteadyClock::now();
  const auto ended = [&](StepRequest* request) {
    Status status = check_wanted(*request, now);
    if (status.ok()) return false;  // what a starved one lacks stays noted
    request->status = std::move(status);
    request->done = true;
    return true;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), ended), waiting_.end());
}

// Runs one step with the mutex released. Requests leave the queue when their step is over, so that
// nothing is lost if planning it fails.
void Scheduler::lead(Lock* lock, bool patient) {
  led_ = true;
  leader_ = std::this_thread::get_id();
  if (patient) gather(lock);
  drop_ended();
  Status failure;
  try {
    plan_step(waiting_, limits_, &plan_);
  } catch (const std::bad_alloc&) {
    failure = error(Code::kOutOfMemory, "no memory to plan a step for %zu waiting sessions",
                    waiting_.size());
  }
  if (!failure.ok()) {
    // The oldest fails alone; the others try again.
    plan_.parts.clear();
    waiting_.front()->status = std::move(failure);
    waiting_.front()->done = true;
    waiting_.erase(waiting_.begin());
  }
  std::sort(plan_.parts.begin(), plan_.parts.end(),
            [this](const StepPlan::Part& a, const StepPlan::Part& b) {
              return comes_before(*a.request, *b.request);
            });
  for (StepRequest* request : waiting_) ++request->passed_over;
  for (const StepPlan::Part& part : plan_.parts) part.request->running = true;
  const size_t left_out = waiting_.size() - plan_.parts.size();
  progress_ = plan_.parts.empty();
  lock->unlock();

  const SteadyClock::time_point begin = SteadyClock::now();
  if (!plan_.parts.empty()) execute();
  const SteadyClock::time_point end = SteadyClock::now();
  if (metrics_.active() && !plan_.parts.empty()) measure(begin, end, left_out);

  lock->lock();
  end_step(end - begin);
  if (!progress_) relieve(lock, patient, begin);
  led_ = false;
  changed_.notify_all();
}

void Scheduler::measure(SteadyClock::time_point begin, SteadyClock::time_point end,
                        size_t waiting) noexcept {
  const auto seconds = [](SteadyClock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  double rows = 0;
  double sequences = 0;
  bool failed = false;
  for (const StepPlan::Part& part : plan_.parts) {
    const StepRequest& request = *part.request;
    if (request.starved || request.evicted) continue;  // its turn is still to come
    metrics_.observe(metric::kQueueWaitSeconds, seconds(begin - request.submitted));
    failed = failed || (!request.status.ok() && request.status.code() != Code::kCancelled);
    rows += part.rows;
    ++sequences;
  }
  if (sequences > 0) {
    metrics_.add(metric::kSteps, 1);
    if (failed) metrics_.add(metric::kStepsFailed, 1);
    metrics_.observe(metric::kStepSeconds, seconds(end - begin));
    metrics_.observe(metric::kBatchSequences, sequences);
    metrics_.observe(metric::kBatchRows, rows);
  }
  if (preempted_ > 0) metrics_.add(metric::kPreemptions, std::exchange(preempted_, 0));
  metrics_.set(metric::kQueueLength, static_cast<double>(waiting + plan_.parts.size()) - sequences);
  if (measure_caches_ == nullptr || !*measure_caches_) return;
  try {
    (*measure_caches_)(metrics_);
  } catch (...) {  // gauges that are not set stay what they were
  }
}

// Nothing could run. If that is because the pool has no block for anybody, it is up to calls that
// are between two steps: they come back soon, or the first request fails. The step that found
// nothing began at `tried`; who came back since may have blocks to give.
void Scheduler::relieve(Lock* lock, bool patient, SteadyClock::time_point tried) {
  const auto before = [this](const StepRequest* a, const StepRequest* b) {
    return comes_before(*a, *b);
  };
  const auto first = std::min_element(waiting_.begin(), waiting_.end(), before);
  if (first == waiting_.end()) return;
  StepRequest* const request = *first;
  const bool tried_it =
      std::any_of(plan_.parts.begin(), plan_.parts.end(),
                  [request](const StepPlan::Part& part) { return part.request == request; });
  if (!tried_it) {  // certainly in the next step: it may take from all others
    request->passed_over = limits_.most_passed_over;
    std::rotate(waiting_.begin(), first, first + 1);
    return;
  }
  const auto queued = static_cast<size_t>(
      std::count_if(waiting_.begin(), waiting_.end(),
                    [](const StepRequest* one) { return one->participant != nullptr; }));
  const bool quiet = tried - std::max(request->starved_since, changed_at_) >= kLeastStarving;
  const bool hopeless = queued == participants_ && quiet;
  if (!hopeless && tried - request->starved_since < kMostStarving) {
    relieving_ = true;
    if (patient) arrivals_.wait_for(*lock, kMostPatience);
    relieving_ = false;
    return;
  }
  request->done = true;
  waiting_.erase(first);
}

void Scheduler::end_step(SteadyClock::duration took) noexcept {
  patience_ = std::clamp(took / 4, kLeastPatience, kMostPatience);
  const SteadyClock::time_point now = SteadyClock::now();
  const StepRequest* ahead = nullptr;  // the first that got on
  for (const StepPlan::Part& part : plan_.parts) {
    StepRequest* const request = part.request;
    request->running = false;
    if (request->starved) continue;  // stays in the queue
    if (request->taken > 0) {
      if (ahead == nullptr || comes_before(*request, *ahead)) ahead = request;
      note_blocks_of(*request);
    }
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
    request->done = true;
    Participant* const participant = request->participant;
    if (participant == nullptr) continue;
    participant->left_ = now;
    if (participant->absence_ <= patience_) expected_.push_back(participant);
  }
  // A call that is before gives nothing up, but it gets on and ends; one behind has been taken from.
  for (StepRequest* request : waiting_) {
    if (request->starved && ahead != nullptr && comes_before(*ahead, *request)) {
      request->starved_since = now;
    }
  }
}

// A call has its first blocks: those that wait for some have been passed over.
void Scheduler::note_blocks_of(const StepRequest& request) noexcept {
  if (request.participant == nullptr || request.participant->holds_) return;
  request.participant->holds_ = true;
  for (StepRequest* other : waiting_) {
    if (other->starved && is_urgent_newcomer(request, *other)) ++other->participant->passed_over_;
  }
}

void Scheduler::execute() {
  attempt(plan_.parts);
  if (plan_.parts.size() == 1) return;
  // One bad sequence fails a whole forward pass; apart, the others succeed.
  const auto failed = [](const StepPlan::Part& part) {
    return !part.request->status.ok() && !part.request->starved;
  };
  if (!std::any_of(reserved_.begin(), reserved_.end(), failed)) return;
  for (const StepPlan::Part& part : plan_.parts) {
    if (failed(part)) attempt({&part, 1});
  }
}

// Reserves, runs, and commits or drops. Sets the status of every request; `reserved_` are those
// whose forward pass was tried. Nothing throws once the pass has succeeded.
void Scheduler::attempt(std::span<const StepPlan::Part> parts) {
  const auto fail_all = [&](const Status& status) {
    for (const StepPlan::Part& part : parts) {
      if (part.request->status.ok()) part.request->status = status;
    }
  };
  try {
    reserve(parts);
    if (reserved_.empty()) return;
    progress_ = true;
    const Status status = forward();
    if (status.ok()) {
      commit();
    } else {
      for (const StepPlan::Part& part : reserved_) part.request->status = status;
    }
  } catch (const std::bad_alloc&) {
    fail_all(error(Code::kOutOfMemory, "no memory for a step of %zu sequences", parts.size()));
  } catch (...) {
    fail_all(error(Code::kInternal, "a step of %zu sequences threw", parts.size()));
  }
}

void Scheduler::reserve(std::span<const StepPlan::Part> parts) {
  reserved_.clear();
  sequences_.clear();
  tokens_.clear();
  positions_.clear();
  wants_.clear();
  wanted_ = 0;
  const SteadyClock::time_point now = SteadyClock::now();
  for (const StepPlan::Part& part : parts) {
    StepRequest* const request = part.request;
    if (request->evicted) continue;
    request->status = check_wanted(*request, now);
    if (!request->status.ok()) continue;
    Result<cache::CachePlan> plan = make_room(part);
    const bool starved = plan.status().code() == Code::kPoolExhausted;
    if (starved && !request->starved) request->starved_since = now;
    request->starved = starved;
    if (!plan.ok()) {
      request->status = plan.status();
      continue;
    }
    graph::BatchSequence sequence;
    sequence.cache = request->cache;
    sequence.state = request->state;
    sequence.plan = *plan;
    sequence.adapter = request->adapter;
    sequence.first_row = static_cast<int32_t>(tokens_.size());
    sequence.n_rows = part.rows;
    sequence.trace_id = request->trace_id;
    sequences_.push_back(sequence);
    const auto rows = static_cast<size_t>(part.rows);
    const auto tokens = request->tokens.first(rows);
    const auto wants = request->wants_logits.first(rows);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    wants_.insert(wants_.end(), wants.begin(), wants.end());
    for (int32_t row = 0; row < part.rows; ++row) {
      positions_.push_back(request->first_position + row);
    }
    wanted_ += wanted_rows(part);
    reserved_.push_back(part);
  }
}

// Reserves the rows of a part. What begins in a pool must find room for all it is going to need.
Result<cache::CachePlan> Scheduler::make_room(const StepPlan::Part& part) {
  StepRequest& request = *part.request;
  cache::KvCache& cache = *request.cache;
  if (cache.length() == 0 && cache.traits().pooled) {
    const int32_t wanted = std::min(std::max(request.room, part.rows), cache.capacity());
    int32_t room = cache.room();
    while (room < wanted && evict_for(request)) room = cache.room();
    if (room < wanted) {
      return error(Code::kPoolExhausted, "%d tokens to evaluate, the pool has room for %d", wanted,
                   room);
    }
  }
  Result<cache::CachePlan> plan = cache.plan(part.rows);
  while (plan.status().code() == Code::kPoolExhausted && evict_for(request)) {
    plan = cache.plan(part.rows);
  }
  return plan;
}

bool Scheduler::evict_idle() noexcept {
  for (size_t tries = 0; tries < idle_.size(); ++tries) {
    Evictable* oldest = nullptr;
    int64_t used = Evictable::kNothing;
    for (Evictable* idle : idle_) {
      const int64_t last = idle->last_used();
      if (last >= used) continue;
      used = last;
      oldest = idle;
    }
    if (oldest == nullptr) return false;
    if (oldest->evict()) return true;
  }
  return false;
}

// Takes the blocks of one sequence that can do without; false if there is none left.
bool Scheduler::evict_for(const StepRequest& request) noexcept {
  const Lock lock(mutex_);
  if (evict_idle()) {
    ++preempted_;
    return true;
  }
  // Requests are reserved in this order, so one behind of this step has not been yet.
  StepRequest* last = nullptr;
  for (StepRequest* other : waiting_) {
    if (other->evicted || other->state != nullptr || other->cache->length() == 0 ||
        !other->cache->traits().pooled || !comes_before(request, *other)) {
      continue;
    }
    if (last == nullptr || comes_before(*last, *other)) last = other;
  }
  if (last == nullptr || !last->cache->truncate(0).ok()) return false;
  ++preempted_;
  if (is_urgent_newcomer(request, *last)) ++last->participant->passed_over_;
  if (last->participant != nullptr) last->participant->holds_ = false;
  last->status = Status();
  last->taken = 0;
  last->evicted = true;
  last->starved = false;
  if (!last->running) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), last));
    last->done = true;
  }
  return true;
}

// A single sequence writes its logits and is cancelled in place; several share a buffer, and a
// cancelled one waits for the end of the step.
Status Scheduler::forward() {
  const StepRequest* const only = reserved_.size() == 1 ? reserved_.front().request : nullptr;
  if (only == nullptr) {
    logits_.resize(wanted_ * static_cast<size_t>(model_.traits().vocab_size));
  }
  graph::Batch batch;
  batch.tokens = tokens_;
  batch.positions = positions_;
  batch.wants_logits = wants_;
  batch.sequences = sequences_;
  batch.logits = only != nullptr ? only->logits : logits_.data();
  batch.logits_rows = wanted_;
  batch.cancel = only != nullptr ? only->cancel : nullptr;
  batch.tracer = tracer_;
  return model_.forward(batch);
}

void Scheduler::commit() noexcept {
  for (const graph::BatchSequence& sequence : sequences_) sequence.cache->commit(sequence.plan);
  for (const StepPlan::Part& part : reserved_) part.request->taken = part.rows;
  if (reserved_.size() == 1) return;
  const float* from = logits_.data();
  for (const StepPlan::Part& part : reserved_) {
    const size_t n = wanted_rows(part) * static_cast<size_t>(model_.traits().vocab_size);
    std::copy_n(from, n, part.request->logits);
    from += n;
  }
}

}  // namespace gen::generate
