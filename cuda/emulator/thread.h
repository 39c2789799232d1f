// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/thread.cuh and grid.cuh. Default arguments bring the place of
// the call.
#pragma once

#include "cuda/emulator/machine.h"

namespace gen::cuda::device {

inline Dim3 thread_index() { return emulator::self().index; }
inline Dim3 block_index() { return emulator::self().block->index; }
inline Dim3 block_size() { return emulator::self().block->grid->launch().block; }
inline Dim3 grid_size() { return emulator::self().block->grid->launch().grid; }
inline unsigned lane_id() { return emulator::self().index.x % 32; }
inline unsigned warp_id() { return emulator::self().index.x / 32; }

inline void sync_threads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::self().block->grid->barrier(0, 0, 0, "sync_threads", {file, line});
}
inline int sync_threads_count(bool condition, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  emulator::self().block->grid->barrier(0, 0, condition, "sync_threads", {file, line});
  return emulator::self().result;
}
inline bool sync_threads_or(bool condition, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  return sync_threads_count(condition, file, line) != 0;
}
inline void sync_some(unsigned barrier, unsigned threads, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  if (barrier == 0 || threads == 0 || threads % 32 != 0) {
    emulator::fail("sync_some of barrier %u and %u threads", barrier, threads);
  }
  emulator::self().block->grid->barrier(barrier, threads, 0, "sync_some", {file, line});
}
inline void sync_grid(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::self().block->grid->grid_barrier({file, line});
}

inline void spin_pause() { emulator::self().block->grid->spin(); }

inline void wait_for_predecessor(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::self().block->grid->wait_for_predecessor({file, line});
}
/// A successor always starts before its predecessor here, so there is nothing to allow.
inline void let_successor_start() {}

inline void device_trap() { emulator::fail("device_trap()"); }

}  // namespace gen::cuda::device
