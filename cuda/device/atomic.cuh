// SPDX-License-Identifier: Apache-2.0
// Atomic operations on global memory and on elements of shared memory; each returns the old value.
// They are relaxed: memory.cuh has operations with memory order.
#pragma once

#include <cstdint>

#include "cuda/device/qualifiers.cuh"
#include "cuda/device/shared.cuh"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/atomic.h"
#else

namespace gen::cuda::device {

/// T: int32_t, uint32_t, float, double or unsigned long long.
template <typename T>
GEN_DEVICE T atomic_add(T* to, T value) {
  return atomicAdd(to, value);
}
/// T: int32_t, uint32_t or unsigned long long.
template <typename T>
GEN_DEVICE T atomic_max(T* to, T value) {
  return atomicMax(to, value);
}
template <typename T>
GEN_DEVICE T atomic_min(T* to, T value) {
  return atomicMin(to, value);
}
template <typename T>
GEN_DEVICE T atomic_or(T* to, T value) {
  return atomicOr(to, value);
}
template <typename T>
GEN_DEVICE T atomic_exchange(T* to, T value) {
  return atomicExch(to, value);
}
/// Compare and swap: stores `value` if the old value is `expected`.
template <typename T>
GEN_DEVICE T atomic_cas(T* to, T expected, T value) {
  return atomicCAS(to, expected, value);
}

template <typename T, typename Index>
GEN_DEVICE T atomic_add(const Shared<T>& to, Index i, T value) {
  return atomicAdd(&to[i], value);
}
template <typename T, typename Index>
GEN_DEVICE T atomic_max(const Shared<T>& to, Index i, T value) {
  return atomicMax(&to[i], value);
}
template <typename T, typename Index>
GEN_DEVICE T atomic_min(const Shared<T>& to, Index i, T value) {
  return atomicMin(&to[i], value);
}
template <typename T, typename Index>
GEN_DEVICE T atomic_cas(const Shared<T>& to, Index i, T expected, T value) {
  return atomicCAS(&to[i], expected, value);
}

}  // namespace gen::cuda::device
#endif
