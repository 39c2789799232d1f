// SPDX-License-Identifier: Apache-2.0
// Appends one position of a layer's keys and values in a device's memory, at the position that a
// counter there holds. The host need not know it, so a captured append can be replayed.
// cuda/ops/cache/cache_append.cu does it on a device, counted_append.cpp in host memory.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace gen::engine {

/// Where a sequence stands, in the device's memory.
struct AppendCounter {
  int32_t position = 0;  // which is written next; what the caller's kernels read
  int32_t dropped = 0;   // not 0: an append found no room since this was last 0
  uint32_t arrived = 0;  // of the kernel's blocks; 0 between kernels
};

/// With p the counter's position: where 0 <= p < max_seq_len row p of k and of v become k_row and
/// v_row, in binary16 as f32_to_f16() rounds them, and with `moves` the position becomes p + 1.
/// Elsewhere `dropped` becomes 1 and all else stays. Addresses are the device's; a row may be one
/// of k or v where these are float32.
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

/// In host memory, at once: the reference of the kernel.
void append_on_host(const CountedAppend& append) noexcept;

}  // namespace gen::engine
