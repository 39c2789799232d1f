// SPDX-License-Identifier: Apache-2.0
// The kernel of the selective scan. Body: selective_scan-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"

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
  int64_t rows;
  const float* dt_bias;
  const float* a;
  const float* d;
  const float* read;  // [H P, N] or null
  float* write;       // [H P, N]
  const float* kept;  // [unsettled][kept_stride]
  int64_t unsettled;
  float* keep;  // [rows][kept_stride] or null
  int64_t kept_stride;
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
