// SPDX-License-Identifier: Apache-2.0
// Vector access to global memory, and memory order between threads of different blocks. Vectors
// must be aligned to their size.
#pragma once

#include <cstdint>

#include "cuda/device/qualifiers.cuh"
#include "cuda/device/words.h"

#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/memory_access.h"
#else

namespace gen::cuda::device {

/// Loads from memory that no thread writes while the kernel runs.
GEN_DEVICE uint32_t load_constant4(const void* from) {
  return __ldg(static_cast<const unsigned*>(from));
}
GEN_DEVICE UInt2 load_constant8(const void* from) {
  const uint2 v = __ldg(static_cast<const uint2*>(from));
  return {v.x, v.y};
}
GEN_DEVICE UInt4 load_constant16(const void* from) {
  const uint4 v = __ldg(static_cast<const uint4*>(from));
  return {v.x, v.y, v.z, v.w};
}
/// The same for data that is read once, such as weights: it does not evict lines of the L1 cache.
GEN_DEVICE UInt4 load_once16(const void* from) {
  UInt4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

/// Loads from memory that other threads may have written.
GEN_DEVICE UInt2 load8(const void* from) { return *static_cast<const UInt2*>(from); }
GEN_DEVICE UInt4 load16(const void* from) { return *static_cast<const UInt4*>(from); }
GEN_DEVICE void store8(void* to, UInt2 value) { *static_cast<UInt2*>(to) = value; }
GEN_DEVICE void store16(void* to, UInt4 value) { *static_cast<UInt4*>(to) = value; }

/// Prefetches the line at `from` to the L2 cache.
GEN_DEVICE void prefetch(const void* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

/// A memory fence: stores of this thread before it are visible before stores after it.
GEN_DEVICE void fence_block() { __threadfence_block(); }
GEN_DEVICE void fence_device() { __threadfence(); }

/// Writes before the store_release() whose value this reads are visible after it.
GEN_DEVICE uint32_t load_acquire(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
GEN_DEVICE void store_release(uint32_t* to, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
/// Adds, releasing what this thread wrote and acquiring what earlier adders wrote.
GEN_DEVICE uint32_t add_acquire_release(uint32_t* to, uint32_t value) {
  uint32_t old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(to), "r"(value)
               : "memory");
  return old;
}

}  // namespace gen::cuda::device
#endif
