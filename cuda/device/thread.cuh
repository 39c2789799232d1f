// SPDX-License-Identifier: Apache-2.0
// Thread indices, block barriers, waits for other threads' counters, and dependent launch. Warp
// operations are in warp.cuh, those of a cooperative grid in grid.cuh.
#pragma once

#include <cstdint>

#include "cuda/device/dim3.h"
#include "cuda/device/qualifiers.cuh"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/thread.h"
#else

namespace gen::cuda::device {

GEN_DEVICE Dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
GEN_DEVICE Dim3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
GEN_DEVICE Dim3 block_size() { return {blockDim.x, blockDim.y, blockDim.z}; }
GEN_DEVICE Dim3 grid_size() { return {gridDim.x, gridDim.y, gridDim.z}; }
/// For one-dimensional blocks.
GEN_DEVICE unsigned lane_id() { return threadIdx.x % 32; }
GEN_DEVICE unsigned warp_id() { return threadIdx.x / 32; }

/// A barrier of the block. Every thread must arrive at the same place of the source; threads that
/// have exited are counted, too.
GEN_DEVICE void sync_threads() { __syncthreads(); }
/// A barrier that returns, to all threads, whether the condition holds for any (or every) thread.
GEN_DEVICE bool sync_threads_or(bool condition) { return __syncthreads_or(condition) != 0; }
GEN_DEVICE int sync_threads_count(bool condition) { return __syncthreads_count(condition); }
/// A named barrier, 1 … 15, of `threads` threads of the block, which are whole warps.
GEN_DEVICE void sync_some(unsigned barrier, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Must be called in every loop that waits for another thread's store.
GEN_DEVICE void spin_pause() { __nanosleep(32); }

/// Programmatic dependent launch: all writes of the predecessor are visible after this. No effect
/// in a plain launch and below sm_90.
GEN_DEVICE void wait_for_predecessor() {
#if GEN_CUDA_ARCH >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// Lets the successor start now; it still waits for the end of this kernel before it reads its
/// results.
GEN_DEVICE void let_successor_start() {
#if GEN_CUDA_ARCH >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Traps on an internal error: ends the kernel and loses the device's context.
GEN_DEVICE void device_trap() { __trap(); }

}  // namespace gen::cuda::device
#endif
