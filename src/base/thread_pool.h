// SPDX-License-Identifier: Apache-2.0
// A small fork-join thread pool. Workers spin briefly, then sleep, so an idle pool costs nothing.
// One caller at a time runs a job on it; others wait their turn. See
// tests/base/thread_pool_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/home_process.h"
#include "base/status.h"

namespace gen {

/// Runs a function on `size()` threads, the caller being one of them.
/// Threads: run() may be called from any thread; concurrent calls are serialised.
class ThreadPool {
 public:
  static constexpr int32_t kMostThreads = 1024;

  /// `threads` counts the caller; 0 means one per CPU this process may use (affinity mask and
  /// cgroup quota). `cpus` optionally pins worker i to cpus[i % size]; empty means no pinning.
  /// threads == 1 creates no thread. Errors: kInvalidArgument above kMostThreads or for an unknown
  /// CPU.
  static Result<std::shared_ptr<ThreadPool>> create(int32_t threads,
                                                    std::span<const int32_t> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int32_t size() const noexcept;
  /// kState in a child of the process it was made in: its threads are not there, and its memory
  /// goes with the process.
  [[nodiscard]] Status check_home() const noexcept { return home_.check("the thread pool"); }

  /// Calls work(context, index) for every index in [0, size()) at once, one per thread, and returns
  /// when all have returned. `work` must not throw and must not call run() on the same pool.
  void run(void (*work)(void* context, int32_t index), void* context) noexcept;

  /// The same for a callable `void(int32_t index)`.
  template <typename F>
  void run(F&& function) noexcept {
    run([](void* context,
           int32_t index) { (*static_cast<std::remove_reference_t<F>*>(context))(index); },
        const_cast<void*>(static_cast<const void*>(&function)));
  }

 private:
  struct Impl;
  explicit ThreadPool(std::unique_ptr<Impl> impl) noexcept;
  HomeProcess home_;
  std::unique_ptr<Impl> impl_;
};

/// CPUs this process may use: the affinity mask capped by the cgroup quota; at least 1. Throws
/// std::bad_alloc.
int32_t usable_cpus();

/// Splits [0, count) into `parts` contiguous ranges whose borders are multiples of `grain`;
/// returns the range of `part`. Deterministic, so a split never changes a result's order.
struct IndexRange {
  int64_t begin;
  int64_t end;
};
IndexRange split_range(int64_t count, int64_t grain, int32_t parts, int32_t part) noexcept;

}  // namespace gen
