// SPDX-License-Identifier: Apache-2.0
// See scheduler.h. The scratch members belong to the leader of the moment: `led_` is what guards
// them, and it changes hands under the mutex.
#include "generate/scheduler.h"

#include <algorithm>
#include <new>

namespace gen::generate {
namespace {

size_t wanted_rows(const StepRequest& request) noexcept {
  return static_cast<size_t>(std::count_if(request.wants_logits.begin(), request.wants_logits.end(),
                                           [](uint8_t wants) { return wants != 0; }));
}

}  // namespace

Status Scheduler::run(StepRequest* request) {
  request->done = false;
  request->status = Status();
  std::unique_lock<std::mutex> lock(mutex_);
  waiting_.push_back(request);
  while (!request->done) {
    if (led_) {
      changed_.wait(lock);
    } else {
      lead(&lock);
    }
  }
  return request->status;
}

// Runs one step with the mutex released. Requests leave the queue when their step is over, so that
// nothing is lost if planning it fails.
void Scheduler::lead(std::unique_lock<std::mutex>* lock) {
  led_ = true;
  Status failure;
  try {
    plan_step(waiting_, limits_, &plan_);
  } catch (const std::bad_alloc&) {
    // The oldest fails alone; the others try again.
    failure = error(Code::kOutOfMemory, "no memory to plan a step for %zu waiting sessions",
                    waiting_.size());
  }
  StepRequest* const oldest = waiting_.front();
  std::span<StepRequest* const> requests = plan_.requests;
  if (!failure.ok()) requests = {&oldest, 1};
  lock->unlock();

  if (failure.ok()) {
    execute(requests);
  } else {
    oldest->status = failure;
  }

  lock->lock();
  for (StepRequest* request : requests) {
    request->done = true;
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
  }
  led_ = false;
  changed_.notify_all();
}

void Scheduler::execute(std::span<StepRequest* const> requests) {
  attempt(requests);
  if (requests.size() == 1) return;
  // One bad sequence fails a whole forward pass; apart, the others succeed.
  const bool failed = std::any_of(reserved_.begin(), reserved_.end(),
                                  [](const StepRequest* request) { return !request->status.ok(); });
  if (!failed) return;
  for (StepRequest* const& request : requests) {
    if (!request->status.ok()) attempt({&request, 1});
  }
}

// Reserves, runs, and commits or drops. Sets the status of every request; `reserved_` are those
// whose forward pass was tried. Nothing throws once the pass has succeeded.
void Scheduler::attempt(std::span<StepRequest* const> requests) {
  const auto fail_all = [&](const Status& status) {
    for (StepRequest* request : requests) {
      if (request->status.ok()) request->status = status;
    }
  };
  try {
    reserve(requests);
    if (reserved_.empty()) return;
    const Status status = forward();
    if (status.ok()) {
      commit();
    } else {
      for (StepRequest* request : reserved_) request->status = status;
    }
  } catch (const std::bad_alloc&) {
    fail_all(error(Code::kOutOfMemory, "no memory for a step of %zu sequences", requests.size()));
  } catch (...) {
    fail_all(error(Code::kInternal, "a step of %zu sequences threw", requests.size()));
  }
}

void Scheduler::reserve(std::span<StepRequest* const> requests) {
  reserved_.clear();
  sequences_.clear();
  tokens_.clear();
  positions_.clear();
  wants_.clear();
  wanted_ = 0;
  for (StepRequest* request : requests) {
    request->status = Status();
    if (request->cancel != nullptr && request->cancel->raised()) {
      request->status =
          error(Code::kCancelled, "cancelled at position %d", request->first_position);
      continue;
    }
    Result<cache::CachePlan> plan = request->cache->plan(request->rows());
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
    sequence.n_rows = request->rows();
    sequence.trace_id = request->trace_id;
    sequences_.push_back(sequence);
    tokens_.insert(tokens_.end(), request->tokens.begin(), request->tokens.end());
    wants_.insert(wants_.end(), request->wants_logits.begin(), request->wants_logits.end());
    for (int32_t row = 0; row < request->rows(); ++row) {
      positions_.push_back(request->first_position + row);
    }
    wanted_ += wanted_rows(*request);
    reserved_.push_back(request);
  }
}

// A single sequence writes its logits and is cancelled in place; several share a buffer, and a
// cancelled one waits for the end of the step.
Status Scheduler::forward() {
  const bool alone = reserved_.size() == 1;
  if (!alone) logits_.resize(wanted_ * static_cast<size_t>(model_.traits().vocab_size));
  graph::Batch batch;
  batch.tokens = tokens_;
  batch.positions = positions_;
  batch.wants_logits = wants_;
  batch.sequences = sequences_;
  batch.logits = alone ? reserved_.front()->logits : logits_.data();
  batch.logits_rows = wanted_;
  batch.cancel = alone ? reserved_.front()->cancel : nullptr;
  batch.tracer = tracer_;
  return model_.forward(batch);
}

void Scheduler::commit() noexcept {
  for (const graph::BatchSequence& sequence : sequences_) sequence.cache->commit(sequence.plan);
  if (reserved_.size() == 1) return;
  const float* from = logits_.data();
  for (StepRequest* request : reserved_) {
    const size_t n = wanted_rows(*request) * static_cast<size_t>(model_.traits().vocab_size);
    std::copy_n(from, n, request->logits);
    from += n;
  }
}

}  // namespace gen::generate
