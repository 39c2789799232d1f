// SPDX-License-Identifier: Apache-2.0
// StepGraphs: lists of operations that come again are captured into CUDA graphs, which start with
// one call. A graph is known by its list: arguments are addresses and sizes, and what lies there
// (tokens, positions, where sequences lie) is read by the kernels, so any sessions replay it. A
// list is run as it is when it comes first, and captured when it comes again: then all it needs is
// made. Nothing waits for the device but what throws graphs away. A list of one row that comes
// often is tried as one kernel (step_kernel.h), which takes the graph's place where it gives the
// same and is faster. The environment variable GEN_MEGAKERNEL: "off", no list is tried; "on", each
// is, at once, and the kernel stays if it gives the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cuda/device/runtime.h"
#include "cuda/engine/device_queue.h"
#include "cuda/engine/step_kernel.h"
#include "engine/ops.h"

namespace gen::cuda {

/// Threads: whoever has a turn on the queue.
class StepGraphs {
 public:
  explicit StepGraphs(DeviceQueue& queue) noexcept;
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  using RunList = std::function<Status(std::span<const engine::OpArgs> list)>;
  /// Enqueues a list, by way of its graph where it has one; `run_list` enqueues one plainly.
  Status run(std::span<const engine::OpArgs> list, const RunList& run_list);
  /// In a dry run, for a list of one row: takes the memory of the kernel that may take the place of
  /// the list's graph, and of those of the same list for shorter texts. Lists of the same weights
  /// differ by what is asked of a step, which is one thing in a text as a rule: the largest counts.
  void foresee(std::span<const engine::OpArgs> list);

  struct Counts {
    uint64_t captured = 0;
    uint64_t replayed = 0;
    uint64_t tried = 0;      // replayed, and run as one kernel beside that
    uint64_t by_kernel = 0;  // run as one kernel alone
    uint64_t different = 0;  // kernels that did not give the same
  };
  [[nodiscard]] Counts counts() const noexcept { return counts_; }

 private:
  struct Kept {
    std::vector<engine::OpArgs> list;
    std::vector<uint64_t> weights;  // numbers of the list's weights, whose addresses may come again
    device::GraphExec exec = nullptr;
    uint64_t used = 0;
    bool refused = false;  // it could not be captured
    uint64_t replays = 0;
    std::unique_ptr<StepKernel> kernel;
    bool by_kernel = false;  // alone, from here on
    bool no_kernel = false;  // never
  };
  /// Of a dry run.
  struct Foreseen {
    std::vector<uint64_t> weights;
    int32_t chunks = 0;  // of the longest texts
    size_t bytes = 0;
    std::unique_ptr<StepKernel> kernel;
  };
  Kept* find(std::span<const engine::OpArgs> list) noexcept;
  /// Room for one more list; the one used longest ago goes.
  Kept& take_place();
  /// Captures the list; where the device refuses that, the list is marked.
  Status capture(Kept& kept, const RunList& run_list);
  /// Replays the graph, runs the kernel that takes its place, or both.
  Status run_captured(Kept& kept, const RunList& run_list);
  Status replay(const Kept& kept);
  /// Makes the list's kernel where there is to be one, and decides on it by its trials. Whether
  /// there is something to run beside the graph or in its place.
  bool consider_kernel(Kept& kept);
  /// Whether a list of the same weights was slower as one kernel: lists differ by the length of the
  /// text, and trials take time.
  [[nodiscard]] bool was_slower(const Kept& kept) const noexcept;
  /// Never again.
  static void reject_kernel(Kept& kept) noexcept;
  void drop(Kept& kept) noexcept;

  enum class Kernels { kOff, kAuto, kOn };
  static Kernels wanted_kernels() noexcept;

  DeviceQueue& queue_;
  std::vector<Kept> kept_;
  std::vector<Foreseen> foreseen_;
  std::vector<uint64_t> weights_;              // of the list at hand
  std::vector<std::vector<uint64_t>> slower_;  // weights of such lists, the latest ones
  uint64_t runs_ = 0;
  Counts counts_;
  const Kernels kernels_;
};

}  // namespace gen::cuda
