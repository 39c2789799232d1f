// SPDX-License-Identifier: Apache-2.0
// What is left of a thread's stack, for code that recurses as deep as its input is nested: threads
// with 64 kB, as callers may have them, and those with megabytes are used to their ends alike.
#pragma once

#include <cstdint>

namespace gen::templates {

/// Threads: of the thread that made it.
class StackBound {
 public:
  /// Of the calling thread.
  StackBound() noexcept;
  /// Without a bound.
  static constexpr StackBound none() noexcept { return StackBound(0); }

  /// Whether no more may be nested: what is left is for one call of anything.
  [[nodiscard]] bool near_end() const noexcept {
    return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < lowest_;
  }

 private:
  explicit constexpr StackBound(uintptr_t lowest) noexcept : lowest_(lowest) {}
  uintptr_t lowest_ = 0;
};

}  // namespace gen::templates
