// SPDX-License-Identifier: Apache-2.0
// "One thread at a time", checked: a second entry, from another thread or from a callback, gets
// kBusy instead of waiting. For sessions, streams, caches and all else that the C API uses in this
// way.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/status.h"

namespace gen {

/// The flag inside the guarded object.
class InUseFlag {
 public:
  InUseFlag() noexcept = default;
  InUseFlag(const InUseFlag&) = delete;
  InUseFlag& operator=(const InUseFlag&) = delete;

  /// False if the object is in use; waits for housekeeping to end.
  [[nodiscard]] bool try_enter() noexcept {
    State seen = State::kFree;
    while (!state_.compare_exchange_weak(seen, State::kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      if (seen == State::kHeld || seen == State::kRetired) return false;
      if (seen == State::kKept) std::this_thread::yield();
      seen = State::kFree;
    }
    return true;
  }
  /// True if retire() was called meanwhile: the user must then destroy the object.
  bool leave() noexcept {
    return state_.exchange(State::kFree, std::memory_order_acq_rel) == State::kRetired;
  }
  /// For the destruction of the object: true if it is not in use; otherwise its user destroys it,
  /// see leave().
  [[nodiscard]] bool retire() noexcept {
    State seen = State::kHeld;
    return !state_.compare_exchange_strong(seen, State::kRetired, std::memory_order_acq_rel,
                                           std::memory_order_acquire);
  }

  /// For the library's own work on an object that nobody uses, which must not make a user's call
  /// busy: short, and not within one of the object's calls. False if it is in use.
  [[nodiscard]] bool try_keep() noexcept {
    State seen = State::kFree;
    return state_.compare_exchange_strong(seen, State::kKept, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void end_keep() noexcept { state_.store(State::kFree, std::memory_order_release); }

  /// Whether a call uses the object; the answer may be outdated at once.
  [[nodiscard]] bool held() const noexcept {
    const State state = state_.load(std::memory_order_relaxed);
    return state == State::kHeld || state == State::kRetired;
  }

 private:
  enum class State : uint8_t { kFree, kHeld, kKept, kRetired };
  std::atomic<State> state_{State::kFree};
};

/// Holds the flag for a scope:
///   InUseGuard guard(&session.in_use);
///   GEN_TRY(guard.entered("session"));
class InUseGuard {
 public:
  explicit InUseGuard(InUseFlag* flag) noexcept : flag_(flag->try_enter() ? flag : nullptr) {}
  ~InUseGuard() {
    if (flag_ != nullptr) flag_->leave();
  }
  InUseGuard(InUseGuard&& other) noexcept : flag_(std::exchange(other.flag_, nullptr)) {}
  InUseGuard(const InUseGuard&) = delete;
  InUseGuard& operator=(const InUseGuard&) = delete;

  /// kBusy naming `what` if another call holds the flag.
  [[nodiscard]] Status entered(const char* what) const noexcept {
    return flag_ != nullptr ? Status() : error(Code::kBusy, "%s is in use by another call", what);
  }

 private:
  InUseFlag* flag_;
};

}  // namespace gen
