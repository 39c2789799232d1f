// SPDX-License-Identifier: Apache-2.0
// StepKernel: a list of operations as a program for one kernel (cuda/step), in place of the list's
// graph. It has to earn that: for some steps both are run, what they have written is compared on
// the device, and both are timed there. The graph comes last, so what a step gives is the graph's.
// Nothing waits for the device but taking memory: what a trial has found is looked at when the list
// comes again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "cuda/engine/device_queue.h"
#include "cuda/engine/staging.h"
#include "cuda/step/compile.h"
#include "engine/ops.h"

namespace gen::cuda {

/// Threads: whoever has a turn on the queue.
class StepKernel {
 public:
  /// Null where the list or the device is not for it, or memory is short.
  static std::unique_ptr<StepKernel> create(DeviceQueue& queue,
                                            std::span<const engine::OpArgs> list);
  /// The device memory that it takes; 0 where the list or the device is not for it.
  static size_t bytes(DeviceQueue& queue, std::span<const engine::OpArgs> list);
  ~StepKernel();
  StepKernel(const StepKernel&) = delete;
  StepKernel& operator=(const StepKernel&) = delete;

  using RunList = std::function<Status(std::span<const engine::OpArgs> list)>;
  /// Enqueues the list that it was made for.
  Status run(std::span<const engine::OpArgs> list, const RunList& run_list);

  /// Enqueues it and then what `run_graph` does, and has the device compare and time both.
  Status try_beside(std::span<const engine::OpArgs> list, const RunList& run_list,
                    const std::function<Status()>& run_graph);
  /// What the trials so far say.
  enum class Verdict {
    kRuns,  // the device is at the last one still
    kSame,  // nothing against it
    kDiffers,
    kFailed,
  };
  Verdict look();
  [[nodiscard]] int32_t trials() const noexcept { return trials_; }
  /// The fewest milliseconds of a trial.
  [[nodiscard]] float own_ms() const noexcept { return own_ms_; }
  [[nodiscard]] float graph_ms() const noexcept { return graph_ms_; }
  [[nodiscard]] size_t instructions() const noexcept { return code_.heads.size(); }

 private:
  StepKernel(DeviceQueue& queue, StepCode code, int32_t blocks)
      : queue_(queue), code_(std::move(code)), blocks_(blocks), pinned_(queue.table()) {}
  static std::unique_ptr<StepKernel> create_or_throw(DeviceQueue& queue,
                                                     std::span<const engine::OpArgs> list);
  Status open(std::span<const engine::OpArgs> list);
  Status record(size_t event);

  DeviceQueue& queue_;
  StepCode code_;
  int32_t blocks_ = 0;
  void* memory_ = nullptr;
  StepView view_ = {};
  StepSpan* spans_ = nullptr;  // on the device, as are the others
  uint8_t* kept_ = nullptr;
  uint32_t* differs_ = nullptr;
  Staging pinned_;
  const uint32_t* found_ = nullptr;  // what *differs_ was at the end of the last trial
  /// Of the last trial: own begin and end, the graph's, the end of all.
  device::Event events_[5] = {};
  bool looked_at_ = true;  // the last trial has been
  int32_t trials_ = 0;
  float own_ms_ = 0.0F;
  float graph_ms_ = 0.0F;
};

}  // namespace gen::cuda
