// SPDX-License-Identifier: Apache-2.0
// The kernel of layer norm. Body: layer_norm-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace gen::engine::cpu {

struct LayerNormKernels {
  /// y[d] = (x[d] - mean(x)) / sqrt(variance(x) + eps) * w[d] + b[d]; w and b may be null; any
  /// length and alignment, y may be x.
  void (*row)(const float* x, const float* w, const float* b, float eps, float* y, int64_t n);
  /// The same with 0 in place of the mean.
  void (*uncentred_row)(const float* x, const float* w, const float* b, float eps, float* y,
                        int64_t n);
};
const LayerNormKernels* layer_norm_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
