// SPDX-License-Identifier: Apache-2.0
// StepKernel: a list of operations as a program for one kernel (cuda/step), which can replace the
// list's graph. First there are trials: for some steps both run, their results are compared on the
// device, and both are timed there. The graph runs last, so the results of these steps are the
// graph's. Only allocations synchronise with the device: the result of a trial is read when the
// list is run again.
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

/// Threads: one with a turn on the queue.
class StepKernel {
 public:
  /// Null if the list or the device is not supported, or memory is short.
  static std::unique_ptr<StepKernel> create(DeviceQueue& queue,
                                            std::span<const engine::OpArgs> list);
  /// Its device memory; 0 if the list or the device is not supported.
  static size_t bytes(DeviceQueue& queue, std::span<const engine::OpArgs> list);
  ~StepKernel();
  StepKernel(const StepKernel&) = delete;
  StepKernel& operator=(const StepKernel&) = delete;

  using RunList = std::function<Status(std::span<const engine::OpArgs> list)>;
  /// Enqueues its list.
  Status run(std::span<const engine::OpArgs> list, const RunList& run_list);

  /// A trial: enqueues the kernel, then `run_graph`; the device compares and times both.
  Status try_beside(std::span<const engine::OpArgs> list, const RunList& run_list,
                    const std::function<Status()>& run_graph);
  /// The result of the trials so far.
  enum class Verdict {
    kRuns,  // the last trial is still running
    kSame,  // no difference so far
    kDiffers,
    kFailed,
  };
  Verdict look();
  [[nodiscard]] int32_t trials() const noexcept { return trials_; }
  /// The minimum time of a trial in milliseconds.
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
  StepSpan* spans_ = nullptr;  // in device memory, as the pointers below
  uint8_t* kept_ = nullptr;
  uint32_t* differs_ = nullptr;
  Staging pinned_;
  const uint32_t* found_ = nullptr;  // *differs_ at the end of the last trial
  /// Events of the last trial: begin and end of the kernel, those of the graph, and the end of all.
  device::Event events_[5] = {};
  bool looked_at_ = true;  // the last trial has been read
  int32_t trials_ = 0;
  float own_ms_ = 0.0F;
  float graph_ms_ = 0.0F;
};

}  // namespace gen::cuda
