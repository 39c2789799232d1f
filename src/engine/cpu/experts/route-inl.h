// SPDX-License-Identifier: Apache-2.0
// Bodies of route.h, compiled once per target.
//   Work:   sixteen elements a step; a last partial step goes through a padded copy.
//   Needs:  no alignment; y may be x.

#if defined(GEN_ENGINE_CPU_ROUTE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ROUTE_INL_H_
#undef GEN_ENGINE_CPU_ROUTE_INL_H_
#else
#define GEN_ENGINE_CPU_ROUTE_INL_H_
#endif

#include "engine/cpu/experts/route.h"
#include "engine/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// y[i] = of(x[i]).
template <typename Of>
HWY_INLINE void each_element(const float* x, float* y, int64_t n, const Of& of) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(of(load(x + i)), y + i);
  if (i < n) store_first(of(load_first(x + i, n - i)), y + i, n - i);
}

inline void exps(const float* x, float most, float* y, int64_t n) {
  each_element(x, y, n, [&](Lanes16 v) { return exp(sub(v, splat(most))); });
}

inline void sigmoids(const float* x, float* y, int64_t n) {
  const Lanes16 one = splat(1.0F);
  each_element(x, y, n, [&](Lanes16 v) { return div(one, add(one, exp(sub(splat(0.0F), v)))); });
}

inline void softpluses(const float* x, float* y, int64_t n) {
  each_element(x, y, n, [](Lanes16 v) HWY_ATTR { return softplus(v); });
}

inline void scale_row(const float* x, float weight, float* y, int64_t n) {
  each_element(x, y, n, [&](Lanes16 v) { return mul(splat(weight), v); });
}

inline void add_scaled_row(const float* x, float weight, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(add(load(y + i), mul(splat(weight), load(x + i))), y + i);
  }
  if (i == n) return;
  const Lanes16 product = mul(splat(weight), load_first(x + i, n - i));
  store_first(add(load_first(y + i, n - i), product), y + i, n - i);
}

constexpr RouteKernels kRoute = {exps, sigmoids, softpluses, scale_row, add_scaled_row};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ROUTE_INL_H_
