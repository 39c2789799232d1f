// SPDX-License-Identifier: Apache-2.0
// Appends one position of a layer's keys and values in device memory, at the position held by a
// counter in device memory. The host need not know the position, so a captured append can be
// replayed. Implemented by cuda/ops/cache/cache_append.cu on a device and counted_append.cpp in
// host memory.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace gen::engine {

/// The position of a sequence, in device memory.
struct AppendCounter {
  int32_t position = 0;  // written next; the caller's kernels read this
  int32_t dropped = 0;   // not 0: an append found no room since this was last reset
  uint32_t arrived = 0;  // thread blocks of the kernel that are done; 0 between kernels
};

/// Let p be the counter's position. If 0 <= p < max_seq_len, k_row and v_row are copied to row p of
/// k and of v, rounded as by f32_to_f16() for binary16, and with `moves` the position becomes
/// p + 1. Otherwise `dropped` becomes 1 and nothing else changes. Addresses are in device memory.
/// If k and v are float32, k_row and v_row may point into them.
struct CountedAppend {
  void* k = nullptr;  // [max_seq_len, dim] of `type`
  void* v = nullptr;
  DType type = DType::kF32;      // or kF16
  const float* k_row = nullptr;  // [dim]
  const float* v_row = nullptr;
  AppendCounter* counter = nullptr;
  int32_t max_seq_len = 0;
  int32_t dim = 0;
  bool moves = false;
};

/// In host memory, synchronously: the reference of the kernel.
void append_on_host(const CountedAppend& append) noexcept;

}  // namespace gen::engine
