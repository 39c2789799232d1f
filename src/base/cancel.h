// SPDX-License-Identifier: Apache-2.0
// A flag that any thread, or a signal handler, may raise, and that long work polls.
#pragma once

#include <atomic>

namespace gen {

/// Raised by fire(); stays raised until consumed or reset. Lock-free, so a signal handler may fire
/// it.
class CancelFlag {
 public:
  CancelFlag() noexcept = default;
  /// Also counts as raised while either of these is: for work that two parties may stop. Null means
  /// none; both must outlive this flag.
  CancelFlag(const CancelFlag* first, const CancelFlag* second) noexcept
      : first_(first), second_(second) {}

  void fire() noexcept { raised_.store(true, std::memory_order_relaxed); }
  /// Lowers it; returns whether it was raised.
  bool take() noexcept { return raised_.exchange(false, std::memory_order_relaxed); }
  void reset() noexcept { raised_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool raised() const noexcept {
    return raised_.load(std::memory_order_relaxed) || (first_ != nullptr && first_->raised()) ||
           (second_ != nullptr && second_->raised());
  }

 private:
  std::atomic<bool> raised_{false};
  const CancelFlag* first_ = nullptr;
  const CancelFlag* second_ = nullptr;
};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace gen
