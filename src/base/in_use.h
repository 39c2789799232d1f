// SPDX-License-Identifier: Apache-2.0
// "One thread at a time", checked: a second entry, from another thread or from a callback, is told
// kBusy instead of waiting. For sessions, streams, caches and whatever else the C API calls so.
#pragma once

#include <atomic>

#include "base/status.h"

namespace gen {

/// The flag inside the guarded object.
class InUseFlag {
 public:
  InUseFlag() noexcept = default;
  InUseFlag(const InUseFlag&) = delete;
  InUseFlag& operator=(const InUseFlag&) = delete;

  [[nodiscard]] bool try_enter() noexcept {
    return !held_.exchange(true, std::memory_order_acquire);
  }
  void leave() noexcept { held_.store(false, std::memory_order_release); }
  /// May be old by the time it is looked at.
  [[nodiscard]] bool held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
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
