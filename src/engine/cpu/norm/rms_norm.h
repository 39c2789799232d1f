// SPDX-License-Identifier: Apache-2.0
// The kernel of RMS norm, also used on single heads by rope_append. Body: rms_norm-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace gen::engine::cpu {

struct RmsNormKernels {
  /// y[d] = x[d] / sqrt(mean(x^2) + eps) * w[d]; any length and alignment, y may be x.
  void (*row)(const float* x, const float* w, float eps, float* y, int64_t n);
};
const RmsNormKernels* rms_norm_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
