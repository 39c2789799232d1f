// SPDX-License-Identifier: Apache-2.0
// Scheduler: where the sessions of a generator meet. Each waits in its own caller's thread; whoever
// finds no leader leads: it plans a step, reserves cache room, runs the model, commits or drops the
// reservations, and hands over once its own rows are done. There is no thread behind it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/tracer.h"
#include "generate/step_plan.h"
#include "model/model.h"

namespace gen::generate {

/// Threads: run() from any number of threads.
class Scheduler {
 public:
  /// `model` must outlive the scheduler, and `tracer`, which sees each forward pass and may be
  /// null.
  Scheduler(const model::Model& model, StepLimits limits, engine::Tracer* tracer = nullptr)
      : model_(model), limits_(limits), tracer_(tracer) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Waits until a step has run the request's rows, and returns its status. When OK the rows are in
  /// the cache and the wanted logits are written, else nothing has changed: kCacheFull or
  /// kOutOfMemory for the reservation, kCancelled, or what the model says. A request that fails
  /// does not affect the others of its step.
  Status run(StepRequest* request);

  /// Requests queued or in the current step; may be old by the time it is looked at.
  [[nodiscard]] size_t waiting() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.size();
  }

 private:
  void lead(std::unique_lock<std::mutex>* lock);
  void execute(std::span<StepRequest* const> requests);
  void attempt(std::span<StepRequest* const> requests);
  void reserve(std::span<StepRequest* const> requests);
  Status forward();
  void commit() noexcept;

  const model::Model& model_;
  const StepLimits limits_;
  engine::Tracer* const tracer_;  // called by the leader

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StepRequest*> waiting_;  // oldest first
  bool led_ = false;

  // Scratch of the leader, kept so that a decode step allocates nothing.
  StepPlan plan_;
  std::vector<StepRequest*> reserved_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<uint8_t> wants_;
  std::vector<graph::BatchSequence> sequences_;
  std::vector<float> logits_;  // [wanted_, V], for steps of several sequences
  size_t wanted_ = 0;
};

}  // namespace gen::generate
