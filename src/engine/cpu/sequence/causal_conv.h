// SPDX-License-Identifier: Apache-2.0
// The kernel of the causal_conv operation. Body: causal_conv-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/sequence/state_places.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

/// Channels [begin, end) of one sequence's rows; strides in floats.
struct CausalConvJob {
  const float* x;
  float* y;
  int64_t x_stride, y_stride;
  const float* w;  // [taps][channels]
  const float* b;  // [channels] or null
  int64_t taps;
  bool silu;
  StatePlaces state;
  int64_t channels;
  int64_t begin, end;
};

/// Row t of the sequence's rows; below 0 those that came before, back to -(unsettled + taps - 1).
/// Null: zeros.
inline const float* causal_conv_row(const CausalConvJob& job, int64_t t) noexcept {
  if (t >= 0) return job.x + t * job.x_stride;
  t += job.state.unsettled;
  if (t >= 0) return job.state.kept + t * job.state.kept_stride;
  return job.state.read != nullptr ? job.state.read + (job.taps - 1 + t) * job.channels : nullptr;
}

struct CausalConvKernels {
  void (*convolve)(const CausalConvJob& job);
};
const CausalConvKernels* causal_conv_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
