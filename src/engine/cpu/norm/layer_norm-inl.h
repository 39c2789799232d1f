// SPDX-License-Identifier: Apache-2.0
// y[d] = (x[d] - mean) / sqrt(variance + eps) * w[d] + b[d], compiled once per target.
//   x, y   [D] float32, any alignment; y may be x
//   w, b   [D] float32 or null
// Work:   the mean, then the mean square of the deviations, each summed over sixteen lanes in
//         ascending order, then one scaling pass.
// Error:  the sums within D / 16 + 4 roundings each, then 5 more
// (tests/engine/layer_norm_test.cpp).

#if defined(GEN_ENGINE_CPU_LAYER_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LAYER_NORM_INL_H_
#undef GEN_ENGINE_CPU_LAYER_NORM_INL_H_
#else
#define GEN_ENGINE_CPU_LAYER_NORM_INL_H_
#endif

#include "engine/cpu/norm/layer_norm.h"
#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// The first n < 16 elements of x minus `mean`, padded with zeros.
HWY_INLINE Lanes16 centred_first(const float* x, int64_t n, Lanes16 mean) {
  float centred[kLanes];
  store(sub(load_first(x, n), mean), centred);
  return load_first(centred, n);
}

template <bool kWeight, bool kBias>
HWY_INLINE Lanes16 scaled_centred(Lanes16 centred, Lanes16 factor, [[maybe_unused]] Lanes16 w,
                                  [[maybe_unused]] Lanes16 b) {
  const Lanes16 normal = mul(centred, factor);
  if constexpr (kWeight && kBias) return fma(normal, w, b);
  if constexpr (kWeight) return mul(normal, w);
  if constexpr (kBias) return add(normal, b);
  return normal;
}

template <bool kWeight, bool kBias>
void write_normal(const float* x, const float* w, const float* b, Lanes16 mean, Lanes16 factor,
                  float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes16 weight = kWeight ? load(w + i) : factor;
    const Lanes16 bias = kBias ? load(b + i) : factor;
    store(scaled_centred<kWeight, kBias>(sub(load(x + i), mean), factor, weight, bias), y + i);
  }
  if (i == n) return;
  const Lanes16 weight = kWeight ? load_first(w + i, n - i) : factor;
  const Lanes16 bias = kBias ? load_first(b + i, n - i) : factor;
  const Lanes16 centred = centred_first(x + i, n - i, mean);
  store_first(scaled_centred<kWeight, kBias>(centred, factor, weight, bias), y + i, n - i);
}

inline Lanes16 mean_of(const float* x, int64_t n) {
  Lanes16 sum = splat(0.0F);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = add(sum, load(x + i));
  if (i < n) sum = add(sum, load_first(x + i, n - i));
  return splat(sum_lanes(sum) / static_cast<float>(n));
}

template <bool kCentred>
void layer_norm_row(const float* x, const float* w, const float* b, float eps, float* y,
                    int64_t n) {
  const Lanes16 mean = kCentred ? mean_of(x, n) : splat(0.0F);
  Lanes16 squares = splat(0.0F);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes16 centred = sub(load(x + i), mean);
    squares = fma(centred, centred, squares);
  }
  if (i < n) {
    const Lanes16 centred = centred_first(x + i, n - i, mean);
    squares = fma(centred, centred, squares);
  }
  const float variance = sum_lanes(squares) / static_cast<float>(n);
  const Lanes16 factor = splat(1.0F / std::sqrt(variance + eps));
  const auto write = w != nullptr
                         ? (b != nullptr ? write_normal<true, true> : write_normal<true, false>)
                         : (b != nullptr ? write_normal<false, true> : write_normal<false, false>);
  write(x, w, b, mean, factor, y, n);
}

constexpr LayerNormKernels kLayerNorm = {layer_norm_row<true>, layer_norm_row<false>};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_LAYER_NORM_INL_H_
