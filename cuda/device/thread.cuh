// SPDX-License-Identifier: Apache-2.0
// Where a thread is, and what it waits for: block barriers, other threads' counters, the kernel
// before. Operations of a warp are in warp.cuh, of a cooperative grid in grid.cuh.
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
/// Of blocks of one dimension.
GEN_DEVICE unsigned lane_id() { return threadIdx.x % 32; }
GEN_DEVICE unsigned warp_id() { return threadIdx.x / 32; }

/// Every thread of the block, exited ones excluded from no count: all must arrive, at the same
/// place of the source.
GEN_DEVICE void sync_threads() { __syncthreads(); }
/// True for all where any thread's condition was; and the like.
GEN_DEVICE bool sync_threads_or(bool condition) { return __syncthreads_or(condition) != 0; }
GEN_DEVICE int sync_threads_count(bool condition) { return __syncthreads_count(condition); }
/// `threads` of the block, whole warps, at barrier 1 … 15.
GEN_DEVICE void sync_some(unsigned barrier, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Belongs into every loop that waits for another thread's store.
GEN_DEVICE void spin_pause() { __nanosleep(32); }

/// Programmatic dependent launch: everything the predecessor wrote is there after this. Nothing
/// where the kernel was launched plainly, and below sm_90.
GEN_DEVICE void wait_for_predecessor() {
#if GEN_CUDA_ARCH >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// The successor may start now (it still waits for our end before it reads what we write).
GEN_DEVICE void let_successor_start() {
#if GEN_CUDA_ARCH >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// A bug of ours: ends the kernel, and the device's context with it.
GEN_DEVICE void device_trap() { __trap(); }

}  // namespace gen::cuda::device
#endif
