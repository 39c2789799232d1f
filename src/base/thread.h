// SPDX-License-Identifier: Apache-2.0
// A thread of the library. All its signals are blocked, because signals belong to the host's
// threads, and it does not block a child of fork(), in which it does not exist.
#pragma once

#include <pthread.h>

#include <utility>

#include "base/home_process.h"
#include "base/status.h"

namespace gen {

/// Movable only. Threads: one at a time.
class Thread {
 public:
  Thread() noexcept = default;
  Thread(Thread&& other) noexcept { swap(other); }
  Thread& operator=(Thread&& other) noexcept {
    Thread moved(std::move(other));
    swap(moved);
    return *this;
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { join(); }

  /// Runs body(argument) in a new thread and ignores its result. kOutOfMemory if the system cannot
  /// create one.
  static Result<Thread> start(void* (*body)(void*), void* argument);

  [[nodiscard]] bool running() const noexcept { return running_; }
  /// Waits for its end; does nothing if there is none, or in another process.
  void join() noexcept;
  /// Leaves it to itself.
  void detach() noexcept;
  [[nodiscard]] pthread_t handle() const noexcept { return handle_; }

 private:
  void swap(Thread& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(running_, other.running_);
    std::swap(home_, other.home_);
  }

  pthread_t handle_{};
  bool running_ = false;
  HomeProcess home_;
};

}  // namespace gen
