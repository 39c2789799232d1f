// SPDX-License-Identifier: Apache-2.0
// Fiber: a stack with a place to go on from. Sanitizers are told of every switch.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace gen::cuda::emulator {

class Fiber {
 public:
  /// The stack that the caller runs on.
  Fiber() = default;
  /// A stack of its own, on which `entry` starts at the first switch. It must not return.
  Fiber(std::byte* stack, size_t bytes, void (*entry)());

  /// Leaves `from`, on which the caller runs, until somebody switches back to it.
  static void change(Fiber& from, Fiber& to);

  /// What lies on the stack is given up: the next switch starts at the entry again. Nothing is
  /// unwound.
  void restart();

  [[nodiscard]] std::byte* top() const { return bottom_ + bytes_; }
  [[nodiscard]] bool holds(const void* address) const {
    return address >= bottom_ && address < top();
  }

 private:
  static void begin();

  std::byte* bottom_ = nullptr;
  size_t bytes_ = 0;
  void (*entry_)() = nullptr;
  void* fake_stack_ = nullptr;
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
};

/// Fibers of one entry, with an inaccessible page under each stack.
class FiberPool {
 public:
  explicit FiberPool(void (*entry)()) : entry_(entry) {}
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  Fiber* take();
  void give_back(Fiber* fiber) { idle_.push_back(fiber); }
  /// Every fiber starts anew and is idle.
  void restart_all();

 private:
  void (*entry_)();
  std::vector<std::byte*> slabs_;
  std::vector<std::unique_ptr<Fiber>> all_;
  std::vector<Fiber*> idle_;
};

}  // namespace gen::cuda::emulator
