// SPDX-License-Identifier: Apache-2.0
// The kernel of the scan operation. Body: scan-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/sequence/state_places.h"

namespace gen::engine::cpu {

/// Channels [begin, end) of one sequence's rows; strides in floats. A kept row is a of all
/// channels, then b * x of all channels.
struct ScanJob {
  const float* a;
  const float* b;
  const float* x;
  float* y;
  int64_t a_stride, b_stride, x_stride, y_stride;
  StatePlaces state;
  int64_t channels;
  int64_t begin, end;
};

struct ScanKernels {
  void (*scan)(const ScanJob& job);
};
const ScanKernels* scan_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
