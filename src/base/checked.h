// SPDX-License-Identifier: Apache-2.0
// Arithmetic that reports overflow, for every size and offset from a file or a caller.
#pragma once

#include <concepts>

namespace gen {

/// out = a + b; false (out unspecified) on overflow of the type of `out`.
template <std::integral A, std::integral B, std::integral T>
[[nodiscard]] constexpr bool checked_add(A a, B b, T* out) noexcept {
  return !__builtin_add_overflow(a, b, out);
}

/// out = a * b; false (out unspecified) on overflow of the type of `out`.
template <std::integral A, std::integral B, std::integral T>
[[nodiscard]] constexpr bool checked_mul(A a, B b, T* out) noexcept {
  return !__builtin_mul_overflow(a, b, out);
}

/// Rounds up to a multiple of `align` (a power of two); false on overflow.
template <std::unsigned_integral T>
[[nodiscard]] constexpr bool checked_align_up(T value, T align, T* out) noexcept {
  T sum{};
  if (!checked_add(value, static_cast<T>(align - 1), &sum)) return false;
  *out = static_cast<T>(sum & ~static_cast<T>(align - 1));
  return true;
}

}  // namespace gen
