// SPDX-License-Identifier: Apache-2.0
// Body of causal_conv.h, compiled once per target.
//   y[t] = act(b + w[0] x[t - K + 1] + ... + w[K - 1] x[t]), fused multiply-adds in this order
//   Work:   sixteen channels at a time; each row is read K times, from the first-level cache.
//   Needs:  no alignment; y is not x.
//   Error:  K roundings, then those of silu.

#if defined(GEN_ENGINE_CPU_CAUSAL_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_CAUSAL_CONV_INL_H_
#undef GEN_ENGINE_CPU_CAUSAL_CONV_INL_H_
#else
#define GEN_ENGINE_CPU_CAUSAL_CONV_INL_H_
#endif

#include "engine/cpu/sequence/causal_conv.h"
#include "engine/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// Sixteen channels from c on, or the last n < 16, of row t. `rows` are the last ones up to it.
template <bool kWhole>
HWY_INLINE void convolve_lanes(const CausalConvJob& job, const float* const* rows, int64_t t,
                               int64_t c, int64_t n) {
  const auto get = [&](const float* p) { return kWhole ? load(p) : load_first(p, n); };
  Lanes16 sum = job.b != nullptr ? get(job.b + c) : splat(0.0F);
  for (int64_t j = 0; j < job.taps; ++j) {
    const Lanes16 x = rows[j] != nullptr ? get(rows[j] + c) : splat(0.0F);
    sum = fma(get(job.w + j * job.channels + c), x, sum);
  }
  if (job.silu) sum = silu(sum);
  float* const y = job.y + t * job.y_stride + c;
  if constexpr (kWhole) {
    store(sum, y);
  } else {
    store_first(sum, y, n);
  }
}

inline void causal_convolve(const CausalConvJob& job) {
  const float* rows[kMaxTaps];
  for (int64_t t = 0; t < job.state.rows; ++t) {
    for (int64_t j = 0; j < job.taps; ++j) rows[j] = causal_conv_row(job, t - job.taps + 1 + j);
    int64_t c = job.begin;
    for (; c + kLanes <= job.end; c += kLanes) convolve_lanes<true>(job, rows, t, c, kLanes);
    if (c < job.end) convolve_lanes<false>(job, rows, t, c, job.end - c);
  }
}

constexpr CausalConvKernels kCausalConv = {causal_convolve};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_CAUSAL_CONV_INL_H_
