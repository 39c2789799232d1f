// SPDX-License-Identifier: Apache-2.0
// y[d] = x[d] / sqrt(mean_d(x[d]^2) + eps) * w[d], compiled once per target.
//   x, y   [D] float32, any alignment; y may be x
//   w      [D] float32
// Work:   the sum of squares over sixteen lanes in ascending order, then one scaling pass.
// Error:  the sum within D / 16 + 4 roundings, then 4 more (tests/engine/rms_norm_test.cpp).

#if defined(GEN_ENGINE_CPU_RMS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_RMS_NORM_INL_H_
#undef GEN_ENGINE_CPU_RMS_NORM_INL_H_
#else
#define GEN_ENGINE_CPU_RMS_NORM_INL_H_
#endif

#include "engine/cpu/norm/rms_norm.h"
#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

inline void rms_norm_row(const float* x, const float* w, float eps, float* y, int64_t n) {
  Lanes16 squares = splat(0.0F);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes16 values = load(x + i);
    squares = fma(values, values, squares);
  }
  if (i < n) {
    const Lanes16 values = load_first(x + i, n - i);
    squares = fma(values, values, squares);
  }
  const float mean = sum_lanes(squares) / static_cast<float>(n);
  const Lanes16 factor = splat(1.0F / std::sqrt(mean + eps));
  for (i = 0; i + kLanes <= n; i += kLanes) {
    store(mul(mul(load(x + i), factor), load(w + i)), y + i);
  }
  if (i < n) {
    const Lanes16 scaled = mul(load_first(x + i, n - i), factor);
    store_first(mul(scaled, load_first(w + i, n - i)), y + i, n - i);
  }
}

constexpr RmsNormKernels kRmsNorm = {rms_norm_row};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_RMS_NORM_INL_H_
