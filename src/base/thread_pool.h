// SPDX-License-Identifier: Apache-2.0
// A small fork-join thread pool. Workers spin briefly, then sleep, so an idle pool costs nothing.
// One caller at a time runs a job on it; others wait their turn. On a busy machine it uses fewer
// threads than it has (threads_in_use.h). See tests/base/thread_pool_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/home_process.h"
#include "base/status.h"

namespace gen {

/// Test hooks in place of the clock and for workers that get no CPU. Null: the steady clock, and no
/// hook.
struct ThreadPoolHooks {
  int64_t (*now)(void* user) = nullptr;  // nanoseconds; called by callers alone
  /// Called by a worker that has seen an offer, before it takes it.
  void (*arrives)(void* user, int32_t worker) = nullptr;
  void* user = nullptr;
};

/// Runs a function on up to `size()` threads, the caller being one of them.
/// Threads: share() and run() may be called from any thread; concurrent calls are serialised.
class ThreadPool {
 public:
  static constexpr int32_t kMaxThreads = 1024;

  /// `threads` counts the caller; 0 means one per CPU this process may use (affinity mask and
  /// cgroup quota). `cpus` optionally pins worker i to cpus[i % size]; empty means no pinning.
  /// threads == 1 creates no thread. Errors: kInvalidArgument above kMaxThreads or for an unknown
  /// CPU.
  static Result<std::shared_ptr<ThreadPool>> create(int32_t threads,
                                                    std::span<const int32_t> cpus = {},
                                                    const ThreadPoolHooks& hooks = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int32_t size() const noexcept;
  /// kState in a child of the process that made it: its threads do not exist there, and its memory
  /// is freed with the process.
  [[nodiscard]] Status check_home() const noexcept { return home_.check("the thread pool"); }

  /// Splits a job: calls function(index, shares), `void(int32_t, int32_t)`, once for every index in
  /// [0, shares), and returns when all have returned. The pool chooses `shares`, 1 to size(), so a
  /// result must not depend on it. The caller runs share 0 and workers the others; shares that no
  /// worker has begun when the caller is free are run by the caller, one after another, so no share
  /// may wait for another one. `function` must not throw and must not use the same pool.
  template <typename F>
  void share(F&& function) noexcept {
    using Function = std::remove_reference_t<F>;
    share({[](void* context, int32_t index, int32_t shares) {
             (*static_cast<Function*>(context))(index, shares);
           },
           const_cast<void*>(static_cast<const void*>(&function))});
  }

  /// Calls function(index), `void(int32_t)`, for every index in [0, size()) at once, one per
  /// thread, at any cost: shares may wait for each other. Otherwise like share().
  template <typename F>
  void run(F&& function) noexcept {
    using Function = std::remove_reference_t<F>;
    run({[](void* context, int32_t index, int32_t) { (*static_cast<Function*>(context))(index); },
         const_cast<void*>(static_cast<const void*>(&function))});
  }

 private:
  struct Work {
    void (*call)(void* context, int32_t index, int32_t shares) = nullptr;
    void* context = nullptr;
  };
  void share(Work work) noexcept;
  void run(Work work) noexcept;

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
