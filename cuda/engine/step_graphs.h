// SPDX-License-Identifier: Apache-2.0
// StepGraphs: repeated lists of operations are captured into CUDA graphs, which are launched by one
// call. A graph is identified by its list: arguments are addresses and sizes, and the data there
// (tokens, positions, block tables) is read by the kernels, so all sessions can replay it. A list
// runs plainly the first time and is captured the second time, when all resources exist. Only the
// eviction of graphs synchronises with the device. A list of one row that is replayed often is
// tried as one kernel (step_kernel.h), which replaces the graph if its results are equal and it is
// faster. The environment variable GEN_MEGAKERNEL: "off", no list is tried; "on", each list is
// tried at once, and the kernel is kept if its results are equal.
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

/// Threads: one with a turn on the queue.
class StepGraphs {
 public:
  explicit StepGraphs(DeviceQueue& queue) noexcept;
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  using RunList = std::function<Status(std::span<const engine::OpArgs> list)>;
  /// Enqueues a list, as its graph if it has one; `run_list` enqueues it plainly.
  Status run(std::span<const engine::OpArgs> list, const RunList& run_list);
  /// In a dry run, for a list of one row: allocates the memory of the kernel that may replace the
  /// list's graph, and of the kernels for shorter contexts. Lists with the same weights differ in
  /// the requested outputs, which rarely change within a context, so only the largest counts.
  void foresee(std::span<const engine::OpArgs> list);

  struct Counts {
    uint64_t captured = 0;
    uint64_t replayed = 0;
    uint64_t tried = 0;      // replayed and also run as one kernel
    uint64_t by_kernel = 0;  // run as one kernel only
    uint64_t different = 0;  // kernels with different results
  };
  [[nodiscard]] Counts counts() const noexcept { return counts_; }

 private:
  struct Kept {
    std::vector<engine::OpArgs> list;
    std::vector<uint64_t> weights;  // numbers of the list's weights; addresses may be reused
    device::GraphExec exec = nullptr;
    uint64_t used = 0;
    bool refused = false;  // capture failed
    uint64_t replays = 0;
    std::unique_ptr<StepKernel> kernel;
    bool by_kernel = false;  // runs as one kernel only
    bool no_kernel = false;  // never runs as one kernel
  };
  /// Of a dry run.
  struct Foreseen {
    std::vector<uint64_t> weights;
    int32_t chunks = 0;  // of the longest texts
    size_t bytes = 0;
    std::unique_ptr<StepKernel> kernel;
  };
  Kept* find(std::span<const engine::OpArgs> list) noexcept;
  /// Makes room for one more list; evicts the least recently used.
  Kept& take_place();
  /// Captures the list; if that fails, the list is marked.
  Status capture(Kept& kept, const RunList& run_list);
  /// Replays the graph, runs the kernel that replaces it, or both.
  Status run_captured(Kept& kept, const RunList& run_list);
  Status replay(const Kept& kept);
  /// Creates the list's kernel if it should have one, and decides on it by its trials. Returns
  /// whether the kernel runs beside the graph or instead of it.
  bool consider_kernel(Kept& kept);
  /// Whether a list with the same weights was slower as one kernel: lists differ by the length of
  /// the context, and trials take time.
  [[nodiscard]] bool was_slower(const Kept& kept) const noexcept;
  /// Rejects the list's kernel for good.
  static void reject_kernel(Kept& kept) noexcept;
  void drop(Kept& kept) noexcept;

  enum class Kernels { kOff, kAuto, kOn };
  static Kernels wanted_kernels() noexcept;

  DeviceQueue& queue_;
  std::vector<Kept> kept_;
  std::vector<Foreseen> foreseen_;
  std::vector<uint64_t> weights_;              // of the current list
  std::vector<std::vector<uint64_t>> slower_;  // weights of the latest lists that were slower
  uint64_t runs_ = 0;
  Counts counts_;
  const Kernels kernels_;
};

}  // namespace gen::cuda
