// SPDX-License-Identifier: Apache-2.0
// Kernels of routers: exponentials of a row, and weighted sums of experts. Body: route-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace gen::engine::cpu {

struct RouteKernels {
  /// y[i] = e^(x[i] - most)
  void (*exps)(const float* x, float most, float* y, int64_t n);
  /// y[i] = 1 / (1 + e^-x[i])
  void (*sigmoids)(const float* x, float* y, int64_t n);
  /// y[i] = ln(1 + e^x[i])
  void (*softpluses)(const float* x, float* y, int64_t n);
  /// y[i] = weight * x[i], or y[i] += weight * x[i]; the product is rounded first.
  void (*scale)(const float* x, float weight, float* y, int64_t n);
  void (*add_scaled)(const float* x, float weight, float* y, int64_t n);
};
const RouteKernels* route_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
