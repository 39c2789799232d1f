// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies from global to shared memory (cp.async; a plain copy below sm_80). After
// wait_copies() a copy is visible to the thread that started it; after a following barrier, to all.
//   copy_async16(tile, i, from);  commit_copies();  …  wait_copies<0>();  sync_threads();
#pragma once

#include <cstdint>

#include "cuda/device/memory.cuh"
#include "cuda/device/qualifiers.cuh"
#include "cuda/device/shared.cuh"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/async_copy.h"
#else

namespace gen::cuda::device {

/// Copies 16 bytes at `from` to element i of `to`, both aligned to 16. If `valid` is false, zeros
/// are written and nothing is read.
template <typename T, typename Index>
GEN_DEVICE void copy_async16(const Shared<T>& to, Index i, const void* from, bool valid = true) {
#if GEN_CUDA_ARCH >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.address(i)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  *reinterpret_cast<UInt4*>(&to[i]) = valid ? load16(from) : UInt4{0, 0, 0, 0};
#endif
}
/// The same for data that other blocks also read: it is kept in the L1 cache.
template <typename T, typename Index>
GEN_DEVICE void copy_async16_again(const Shared<T>& to, Index i, const void* from,
                                   bool valid = true) {
#if GEN_CUDA_ARCH >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to.address(i)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  copy_async16(to, i, from, valid);
#endif
}
/// The same for 4 bytes.
template <typename T, typename Index>
GEN_DEVICE void copy_async4(const Shared<T>& to, Index i, const void* from, bool valid = true) {
#if GEN_CUDA_ARCH >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to.address(i)), "l"(from),
               "r"(valid ? 4 : 0)
               : "memory");
#else
  *reinterpret_cast<uint32_t*>(&to[i]) = valid ? *static_cast<const uint32_t*>(from) : 0;
#endif
}
/// Ends a group of all copies started since the last one.
GEN_DEVICE void commit_copies() {
#if GEN_CUDA_ARCH >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until at most `kPending` of the latest groups are in flight.
template <int kPending>
GEN_DEVICE void wait_copies() {
#if GEN_CUDA_ARCH >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

}  // namespace gen::cuda::device
#endif
