// SPDX-License-Identifier: Apache-2.0
// The kernels of the delta_net operation. Body: delta_net-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

/// One row of one head, ready for the recurrence.
struct DeltaRow {
  const float* q;  // [k_dim], or null: no y is wanted
  const float* k;  // [k_dim]
  const float* v;  // [v_dim]
  float* y;        // [v_dim]
  float decay;
  float strength;  // the factor of what v and the state's answer differ by
};

/// A head's state [k_dim][v_dim] before some rows and after them, which may be the same.
struct DeltaHead {
  const float* from;
  float* to;
  int32_t k_dim;
  int32_t v_dim;
  float* strip;  // scratch, delta_strip_floats(k_dim)
};

struct DeltaNetKernels {
  /// to[i] = x[i] / sqrt(sum x^2 + eps) * scale, n a multiple of 16.
  void (*unit)(const float* x, float eps, float scale, float* to, int64_t n);
  /// decay[i] = e^(a ln(1 + e^(alpha[i] + dt))), strength[i] = 1 / (1 + e^-beta[i]) of sixteen
  /// rows.
  void (*gates)(const float* alpha, const float* beta, float dt, float a, float* decay,
                float* strength);
  /// Rows [0, n), n >= 1, in order.
  void (*recur)(const DeltaHead& head, const DeltaRow* rows, int64_t n);
};
const DeltaNetKernels* delta_net_kernels(CpuLevel level) noexcept;

/// Columns of a state that are processed together.
inline constexpr int64_t kDeltaStrip = 64;
inline int64_t delta_strip_floats(int32_t k_dim) noexcept { return k_dim * kDeltaStrip; }

}  // namespace gen::engine::cpu
