// SPDX-License-Identifier: Apache-2.0
// See scheduler.h. The scratch members belong to the leader of the moment: `led_` is what guards
// them, and it changes hands under the mutex.
#include "generate/scheduler.h"

#include <algorithm>
#include <new>

namespace gen::generate {
namespace {

// A step waits for its sessions to come back for at most a quarter of what the last one took: that
// is soon won back by running them together.
constexpr SteadyClock::duration kLeastPatience = std::chrono::microseconds(50);
constexpr SteadyClock::duration kMostPatience = std::chrono::milliseconds(5);

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
}

Participant::~Participant() {
  const std::lock_guard<std::mutex> lock(scheduler_->mutex_);
  --scheduler_->participants_;
  scheduler_->expect_no_more(this);
}

Status Scheduler::run(StepRequest* request) {
  submit(request);
  wait_any({&request, 1});
  return request->status;
}

void Scheduler::submit(StepRequest* request) {
  const Lock lock(mutex_);
  waiting_.push_back(request);
  request->done = false;
  request->running = false;
  request->passed_over = 0;
  request->taken = 0;
  request->status = Status();
  Participant* const participant = request->participant;
  if (participant == nullptr) return;
  if (participant->left_ != SteadyClock::time_point()) {
    participant->absence_ = SteadyClock::now() - participant->left_;
  }
  expect_no_more(participant);
}

void Scheduler::wait_any(std::span<StepRequest* const> requests) {
  if (requests.empty()) return;
  const auto any_done = [&] {
    return std::any_of(requests.begin(), requests.end(),
                       [](const StepRequest* request) { return request->done; });
  };
  Lock lock(mutex_);
  while (!any_done()) {
    if (led_) {
      changed_.wait(lock);
    } else {
      lead(&lock, true);
    }
  }
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
    request->status = check_wanted(*request, now);
    request->done = !request->status.ok();
    return request->done;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), ended), waiting_.end());
}

// Runs one step with the mutex released. Requests leave the queue when their step is over, so that
// nothing is lost if planning it fails.
void Scheduler::lead(Lock* lock, bool patient) {
  led_ = true;
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
  for (StepRequest* request : waiting_) ++request->passed_over;
  for (const StepPlan::Part& part : plan_.parts) part.request->running = true;
  lock->unlock();

  const SteadyClock::time_point begin = SteadyClock::now();
  if (!plan_.parts.empty()) execute();
  const SteadyClock::time_point end = SteadyClock::now();

  lock->lock();
  end_step(end - begin);
  led_ = false;
  changed_.notify_all();
}

void Scheduler::end_step(SteadyClock::duration took) noexcept {
  patience_ = std::clamp(took / 4, kLeastPatience, kMostPatience);
  const SteadyClock::time_point now = SteadyClock::now();
  for (const StepPlan::Part& part : plan_.parts) {
    StepRequest* const request = part.request;
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
    request->running = false;
    request->done = true;
    Participant* const participant = request->participant;
    if (participant == nullptr) continue;
    participant->left_ = now;
    if (participant->absence_ <= patience_) expected_.push_back(participant);
  }
}

void Scheduler::execute() {
  attempt(plan_.parts);
  if (plan_.parts.size() == 1) return;
  // One bad sequence fails a whole forward pass; apart, the others succeed.
  const auto failed = [](const StepPlan::Part& part) { return !part.request->status.ok(); };
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
    request->status = check_wanted(*request, now);
    if (!request->status.ok()) continue;
    Result<cache::CachePlan> plan = request->cache->plan(part.rows);
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
