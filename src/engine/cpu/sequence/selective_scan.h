// SPDX-License-Identifier: Apache-2.0
// The kernel of the selective scan. Body: selective_scan-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/sequence/state_places.h"

namespace gen::engine::cpu {

/// A job has at most so many channels and numbers of state, which then lie in the first-level
/// cache.
constexpr int64_t kScanChannels = 64;
constexpr int64_t kScanCells = 4096;

/// Channels [begin, end) of the H P of one sequence's rows; strides in floats. A kept row is x of
/// all channels, then delta of all heads, then b.
struct SelectiveScanJob {
  const float* x;
  const float* dt;
  const float* b;
  const float* c;
  float* y;
  int64_t x_stride, dt_stride, b_stride, c_stride, y_stride;
  const float* dt_bias;
  const float* a;
  const float* d;
  StatePlaces state;
  int64_t heads;     // H
  int64_t channels;  // P
  int64_t groups;    // G
  int64_t size;      // N
  int64_t begin, end;
};

struct SelectiveScanKernels {
  void (*scan)(const SelectiveScanJob& job);
};
const SelectiveScanKernels* selective_scan_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
