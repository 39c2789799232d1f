// SPDX-License-Identifier: Apache-2.0
// See scheduler.h. The state of admission and runner between two calls belongs to the current
// leader; leadership changes under the queue's mutex.
#include "generate/step/scheduler.h"

#include <algorithm>
#include <new>

#include "generate/request/metric_names.h"

namespace gen::generate {
namespace {

// Blocks that a plan has taken go back to the pool with it.
void give_back_reserved(const StepRequest& request) noexcept {
  cache::KvCache& cache = *request.cache;
  if (!cache.traits().pooled) return;
  try {
    (void)cache.truncate(cache.length());
  } catch (...) {  // they stay until the request ends
  }
}

}  // namespace

Status Scheduler::run(StepRequest* request) {
  submit(request);
  (void)wait_any({&request, 1});  // a new request always gets done
  return request->status;
}

bool Scheduler::wait_any(std::span<StepRequest* const> requests) {
  if (requests.empty()) return true;
  RequestQueue::Lock lock = queue_.lock();
  for (;;) {
    const RequestQueue::Turn turn = queue_.wait(&lock, requests);
    if (turn != RequestQueue::Turn::kLead) return turn == RequestQueue::Turn::kDone;
    lead(&lock, true);
  }
}

bool Scheduler::poll(StepRequest* request) {
  RequestQueue::Lock lock = queue_.lock();
  if (!request->done && !queue_.led() && !queue_.gives_way(*request)) lead(&lock, false);
  return request->done;
}

// Runs one step with the mutex released.
void Scheduler::lead(RequestQueue::Lock* lock, bool patient) {
  queue_.take_lead();
  if (patient) queue_.gather(lock);
  queue_.drop_ended();
  admission_.choose();
  const std::span<StepPlan::Slice> slices = admission_.slices();
  const size_t left_out = queue_.waiting().size() - slices.size();
  lock->unlock();

  const SteadyClock::time_point begin = SteadyClock::now();
  const bool progress = slices.empty() || execute(slices);
  const SteadyClock::time_point end = SteadyClock::now();
  if (metrics_.active() && !slices.empty()) {
    runner_.measure(slices, begin, end, left_out, admission_.take_preempted());
  }

  lock->lock();
  queue_.end_step(slices, end - begin);
  if (!progress) queue_.relieve(lock, slices, patient, begin);
  // Calls that have failed or were cancelled wait no longer.
  if (metrics_.active() && (slices.empty() || !progress) && queue_.waiting().empty()) {
    lock->unlock();
    metrics_.set(metric::kQueueLength, 0);
    lock->lock();
  }
  queue_.leave_lead();
}

// Returns whether a pass was attempted. Requests that did not run and may stay in the queue are
// unchanged.
bool Scheduler::execute(std::span<StepPlan::Slice> slices) {
  runner_.propose(slices);
  const bool progress = try_all(slices);
  for (StepPlan::Slice& slice : slices) {
    if (slice.request->taken == 0) StepRunner::drop_drafts(&slice);
  }
  return progress;
}

bool Scheduler::try_all(std::span<StepPlan::Slice> slices) {
  bool threw = false;
  bool progress = attempt(slices, &threw);
  if (slices.size() == 1 && slices[0].drafts == 0) return progress;
  // One bad sequence fails a whole forward pass; run alone and without drafts, the others succeed,
  // and an allocation may succeed as well. A state that was lost in the pass is made anew by its
  // owner.
  const auto failed = [](const StepPlan::Slice& slice) {
    const cache::SequenceState* const state = slice.request->state;
    return !slice.request->status.ok() && !slice.request->starved &&
           (state == nullptr || !state->lost());
  };
  const std::span<const StepPlan::Slice> tried = runner_.slices();
  if (!threw && !std::any_of(tried.begin(), tried.end(), failed)) return progress;
  // The first of them may need the blocks of all others that are tried again behind it.
  for (const StepPlan::Slice& slice : slices) {
    if (failed(slice)) give_back_reserved(*slice.request);
  }
  for (StepPlan::Slice& slice : slices) {
    if (!failed(slice)) continue;
    const bool drafted = runner_.drafts() && slice.rows > 1 && slice.drafts > 0;
    StepRunner::drop_drafts(&slice);
    progress = attempt({&slice, 1}, &threw) || progress;
    // Counted as a failure to copy a state before drafts is.
    if (drafted && slice.request->status.ok()) metrics_.add(metric::kDraftsFailed, 1);
  }
  return progress;
}

// Reserves and runs. Sets the status of every request, and `*threw` if there was an exception.
// Nothing throws once the pass has succeeded.
bool Scheduler::attempt(std::span<const StepPlan::Slice> slices, bool* threw) {
  bool tried = false;
  const auto fail_all = [&](const Status& status) {
    *threw = true;
    for (const StepPlan::Slice& slice : slices) {
      // Who gave way to others of this step goes on later.
      StepRequest& request = *slice.request;
      if (request.status.ok() && !request.evicted) request.status = status;
    }
  };
  try {
    runner_.begin(slices);
    const SteadyClock::time_point now = SteadyClock::now();
    for (const StepPlan::Slice& slice : slices) {
      cache::CachePlan plan;
      if (admission_.reserve(slice, now, &plan)) runner_.add(slice, plan);
    }
    tried = !runner_.slices().empty();
    if (tried) runner_.run();
  } catch (const std::bad_alloc&) {
    fail_all(error(Code::kOutOfMemory, "no memory for a step of %zu sequences", slices.size()));
  } catch (...) {
    fail_all(error(Code::kInternal, "a step of %zu sequences threw", slices.size()));
  }
  return tried;
}

}  // namespace gen::generate
