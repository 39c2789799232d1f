// SPDX-License-Identifier: Apache-2.0
// cache_append: with p = counter.position, where 0 <= p < max_seq_len,
//   k[p, :] = r(k_row[:]), v[p, :] = r(v_row[:])       and with `moves`  counter.position = p + 1;
// otherwise counter.dropped = 1, and nothing else is written. r(x) is x in f32; in f16 it rounds to
// nearest even, with infinity from 65520 on; a NaN becomes 0x7E00 with its sign.
//   k, v          [max_seq_len, dim] f32 or f16 row major
//   k_row, v_row  [dim] f32, in f32 rows of k and v among others
// Error:  none beyond r(): the bits of append_on_host() (tests/cuda/engine/cache_append_test.cpp).
// Work:   one element a thread; blocks are [parts of a row, 2], keys and values.
// Order:  all blocks read the position before the last of them advances it; an arrival counter
//         tells which is the last.
// Needs:  the stream's other kernels are the caller's, so this one neither starts before its
//         predecessor ends nor lets its successor start early.
#include "cuda/device/memory.cuh"
#include "cuda/ops/cache/cache_append.h"
#include "cuda/ops/context.h"
#include "cuda/ops/device.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

template <typename T>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    cache_append_kernel(engine::CountedAppend append, uint32_t blocks) {
  device::wait_for_predecessor();
  const int32_t position = append.counter->position;
  if (position < 0 || position >= append.max_seq_len) {
    if (block_x() == 0 && block_y() == 0 && thread_x() == 0) append.counter->dropped = 1;
    return;
  }
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i < append.dim) {
    const bool keys = block_y() == 0;
    T* const to = static_cast<T*>(keys ? append.k : append.v) + int64_t{position} * append.dim;
    const float x = (keys ? append.k_row : append.v_row)[i];
    if constexpr (sizeof(T) == sizeof(float)) {
      to[i] = x;
    } else {
      to[i] = f32_to_f16(x);
    }
  }
  if (!append.moves) return;
  sync_threads();
  if (thread_x() != 0) return;
  if (device::add_acquire_release(&append.counter->arrived, 1) + 1 < blocks) return;
  append.counter->arrived = 0;
  append.counter->position = position + 1;
}

}  // namespace

Status cache_append(const engine::CountedAppend& append, device::Stream stream) {
  device::LaunchConfig config;
  config.name = "cache_append";
  config.grid = grid_of(append.dim, kThreads);
  config.grid.y = 2;
  config.block = block_of(kThreads);
  config.stream = stream;
  const auto kernel =
      append.type == DType::kF16 ? cache_append_kernel<uint16_t> : cache_append_kernel<float>;
  return device_status(device::launch(kernel, config, append, config.grid.x * config.grid.y),
                       config.name);
}

}  // namespace gen::cuda
