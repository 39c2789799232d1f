// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/atomic.cuh.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/device/memory.cuh"
#include "cuda/emulator/machine.h"
#include "cuda/emulator/shared.h"

namespace gen::cuda::emulator {

/// Puts change(old) in the place of old, which it returns.
template <typename T, typename Change>
T exchange(T* at, Change change) {
  check_read(at, sizeof(T));
  const T old = *at;
  *at = change(old);
  return old;
}
template <typename T, typename Index, typename Change>
T exchange(const device::Shared<T>& array, Index i, Change change) {
  Thread& thread = self();
  auto* at = static_cast<T*>(
      thread.block->shared.atomic(thread, array.place(i, sizeof(T)), sizeof(T), array.name()));
  const T old = *at;
  *at = change(old);
  return old;
}
/// Integers wrap.
template <typename T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

}  // namespace gen::cuda::emulator

namespace gen::cuda::device {

template <typename T>
T atomic_add(T* to, std::type_identity_t<T> value) {
  return emulator::exchange(to, [=](T old) { return emulator::wrapping_sum(old, value); });
}
template <typename T>
T atomic_max(T* to, std::type_identity_t<T> value) {
  return emulator::exchange(to, [=](T old) { return old < value ? value : old; });
}
template <typename T>
T atomic_min(T* to, std::type_identity_t<T> value) {
  return emulator::exchange(to, [=](T old) { return value < old ? value : old; });
}
template <typename T>
T atomic_or(T* to, std::type_identity_t<T> value) {
  return emulator::exchange(to, [=](T old) { return static_cast<T>(old | value); });
}
template <typename T>
T atomic_exchange(T* to, std::type_identity_t<T> value) {
  return emulator::exchange(to, [=](T) { return value; });
}
template <typename T>
T atomic_cas(T* to, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return emulator::exchange(to, [=](T old) { return old == expected ? value : old; });
}

template <typename T, typename Index>
T atomic_add(const Shared<T>& to, Index i, std::type_identity_t<T> value) {
  return emulator::exchange(to, i, [=](T old) { return emulator::wrapping_sum(old, value); });
}
template <typename T, typename Index>
T atomic_max(const Shared<T>& to, Index i, std::type_identity_t<T> value) {
  return emulator::exchange(to, i, [=](T old) { return old < value ? value : old; });
}
template <typename T, typename Index>
T atomic_min(const Shared<T>& to, Index i, std::type_identity_t<T> value) {
  return emulator::exchange(to, i, [=](T old) { return value < old ? value : old; });
}
template <typename T, typename Index>
T atomic_cas(const Shared<T>& to, Index i, std::type_identity_t<T> expected,
             std::type_identity_t<T> value) {
  return emulator::exchange(to, i, [=](T old) { return old == expected ? value : old; });
}

}  // namespace gen::cuda::device
