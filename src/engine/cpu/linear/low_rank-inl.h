// SPDX-License-Identifier: Apache-2.0
// Bodies of low_rank.h, compiled once per target.
//   Work:   dot: sixteen elements at a time; add: sixteen columns through all ranks.
//   Needs:  no alignment.
//   Error:  that of sums of n and of rank products, each rounded once.

#if defined(GEN_ENGINE_CPU_LOW_RANK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LOW_RANK_INL_H_
#undef GEN_ENGINE_CPU_LOW_RANK_INL_H_
#else
#define GEN_ENGINE_CPU_LOW_RANK_INL_H_
#endif

#include "engine/cpu/linear/low_rank.h"
#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

inline float low_rank_dot(const float* a, const float* x, int64_t n) {
  Lanes16 sum = splat(0.0F);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = fma(load(a + i), load(x + i), sum);
  if (i < n) sum = fma(load_first(a + i, n - i), load_first(x + i, n - i), sum);
  return sum_lanes(sum);
}

inline void low_rank_add(const float* b, int64_t stride, const float* u, int64_t rank, float* sums,
                         int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes16 value = splat(0.0F);
    for (int64_t r = 0; r < rank; ++r) value = fma(load(b + r * stride + i), splat(u[r]), value);
    store(add(load(sums + i), value), sums + i);
  }
  if (i == n) return;
  Lanes16 value = splat(0.0F);
  for (int64_t r = 0; r < rank; ++r) {
    value = fma(load_first(b + r * stride + i, n - i), splat(u[r]), value);
  }
  store_first(add(load_first(sums + i, n - i), value), sums + i, n - i);
}

constexpr LowRankKernels kLowRank = {low_rank_dot, low_rank_add};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_LOW_RANK_INL_H_
