// SPDX-License-Identifier: Apache-2.0
// Kernels that work element by element on rows of floats. Bodies: elementwise-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/activation.h"

namespace gen::engine::cpu {

/// Any length and alignment; y may be an input.
struct ElementwiseKernels {
  /// y[i] = a[i] + b[i]
  void (*add)(const float* a, const float* b, float* y, int64_t n);
  /// y[i] = act(gate[i]) * up[i], by Act.
  void (*gated[kActs])(const float* gate, const float* up, float* y, int64_t n,
                       const Activation& activation);
  /// y[i] = act(x[i]), by Act; null for activations that are gated only.
  void (*activate[kActs])(const float* x, float* y, int64_t n, const Activation& activation);
  /// y[i] = binary16(x[i]), rounded to nearest even, as f32_to_f16.
  void (*to_half)(const float* x, uint16_t* y, int64_t n);
};
const ElementwiseKernels* elementwise_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
