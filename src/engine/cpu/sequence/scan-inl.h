// SPDX-License-Identifier: Apache-2.0
// Body of scan.h, compiled once per target.
//   h = a[t] * h + (b[t] * x[t]), b x rounded first, then one fused multiply-add; y[t] = h
//   Work:   sixteen channels at a time through all rows; a channel is never split.
//   Needs:  no alignment; y may be a, b or x, since a row is read before it is written.
//   Error:  against exact arithmetic each row adds (|h| + |b x|) * 2^-23 at most.

#if defined(GEN_ENGINE_CPU_SCAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_SCAN_INL_H_
#undef GEN_ENGINE_CPU_SCAN_INL_H_
#else
#define GEN_ENGINE_CPU_SCAN_INL_H_
#endif

#include "engine/cpu/sequence/scan.h"
#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// Sixteen channels from c on, or the last n < 16.
template <bool kWhole>
HWY_INLINE void scan_lanes(const ScanJob& job, int64_t c, int64_t n) {
  const auto get = [&](const float* p) { return kWhole ? load(p) : load_first(p, n); };
  const auto put = [&](Lanes16 value, float* p) {
    if constexpr (kWhole) {
      store(value, p);
    } else {
      store_first(value, p, n);
    }
  };
  Lanes16 h = job.state.read != nullptr ? get(job.state.read + c) : splat(0.0F);
  for (int64_t i = 0; i < job.state.unsettled; ++i) {
    const float* const row = job.state.kept + i * job.state.kept_stride + c;
    h = fma(get(row), h, get(row + job.channels));
  }
  const int64_t settled = job.state.settled;
  if (settled == 0) put(h, job.state.write + c);
  for (int64_t t = 0; t < job.state.rows; ++t) {
    const Lanes16 a = get(job.a + t * job.a_stride + c);
    const Lanes16 bx = mul(get(job.b + t * job.b_stride + c), get(job.x + t * job.x_stride + c));
    if (t >= settled) {
      float* const row = job.state.keep + (t - settled) * job.state.kept_stride + c;
      put(a, row);
      put(bx, row + job.channels);
    }
    h = fma(a, h, bx);
    put(h, job.y + t * job.y_stride + c);
    if (t + 1 == settled) put(h, job.state.write + c);
  }
}

inline void scan_channels(const ScanJob& job) {
  int64_t c = job.begin;
  for (; c + kLanes <= job.end; c += kLanes) scan_lanes<true>(job, c, kLanes);
  if (c < job.end) scan_lanes<false>(job, c, job.end - c);
}

constexpr ScanKernels kScan = {scan_channels};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_SCAN_INL_H_
