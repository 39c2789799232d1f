// SPDX-License-Identifier: Apache-2.0
// See step_runner.h.
#include "generate/step_runner.h"

#include <algorithm>
#include <chrono>

#include "generate/metric_names.h"

namespace gen::generate {
namespace {

size_t wanted_rows(const StepPlan::Part& part) noexcept {
  const auto wants = part.request->wants_logits.first(static_cast<size_t>(part.rows));
  return static_cast<size_t>(
      std::count_if(wants.begin(), wants.end(), [](uint8_t wanted) { return wanted != 0; }));
}

}  // namespace

void StepRunner::begin() noexcept {
  parts_.clear();
  sequences_.clear();
  tokens_.clear();
  positions_.clear();
  wants_.clear();
  wanted_ = 0;
}

void StepRunner::add(const StepPlan::Part& part, const cache::CachePlan& plan) {
  const StepRequest& request = *part.request;
  graph::BatchSequence sequence;
  sequence.cache = request.cache;
  sequence.state = request.state;
  sequence.plan = plan;
  sequence.adapter = request.adapter;
  sequence.first_row = static_cast<int32_t>(tokens_.size());
  sequence.n_rows = part.rows;
  sequence.trace_id = request.trace_id;
  sequences_.push_back(sequence);
  const auto rows = static_cast<size_t>(part.rows);
  const auto tokens = request.tokens.first(rows);
  const auto wants = request.wants_logits.first(rows);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  wants_.insert(wants_.end(), wants.begin(), wants.end());
  for (int32_t row = 0; row < part.rows; ++row) {
    positions_.push_back(request.first_position + row);
  }
  wanted_ += wanted_rows(part);
  parts_.push_back(part);
}

void StepRunner::run() {
  const Status status = forward();
  if (status.ok()) return hand_out();
  for (const StepPlan::Part& part : parts_) part.request->status = status;
}

// A single sequence writes its logits and is cancelled in place; several share a buffer, and a
// cancelled one waits for the end of the step.
Status StepRunner::forward() {
  const StepRequest* const only = parts_.size() == 1 ? parts_.front().request : nullptr;
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

void StepRunner::hand_out() noexcept {
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].request->plan = sequences_[i].plan;
    parts_[i].request->taken = parts_[i].rows;
  }
  if (parts_.size() == 1) return;
  const float* from = logits_.data();
  for (const StepPlan::Part& part : parts_) {
    const size_t n = wanted_rows(part) * static_cast<size_t>(model_.traits().vocab_size);
    std::copy_n(from, n, part.request->logits);
    from += n;
  }
}

void StepRunner::measure(std::span<const StepPlan::Part> parts, SteadyClock::time_point begin,
                         SteadyClock::time_point end, size_t left_out, int32_t preempted) noexcept {
  const auto seconds = [](SteadyClock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  double rows = 0;
  double sequences = 0;
  bool failed = false;
  for (const StepPlan::Part& part : parts) {
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
  if (preempted > 0) metrics_.add(metric::kPreemptions, preempted);
  metrics_.set(metric::kQueueLength, static_cast<double>(left_out + parts.size()) - sequences);
  if (measure_caches_ == nullptr || !*measure_caches_) return;
  try {
    (*measure_caches_)(metrics_);
  } catch (...) {  // gauges that are not set stay what they were
  }
}

}  // namespace gen::generate
