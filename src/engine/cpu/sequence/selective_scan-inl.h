// SPDX-License-Identifier: Apache-2.0
// Body of selective_scan.h, compiled once per target.
//   s = decay * s + (b * (delta * x)), b and delta x rounded first, then one fused multiply-add;
//   y = sum over lanes of s * c, then one fused multiply-add with d and x
//   Work:   rows in order; of each, four channels at a time through their numbers of state, so that
//           b and c are read once for four. A job's state stays in the first-level cache.
//   Order:  number n of a channel is added to lane n % 16 in ascending order; sum_lanes ends it.
//   Needs:  no alignment; y may be x, since a channel's x is read before its y is written.
//   Error:  against exact arithmetic with the same delta and decay each row adds
//           (|decay s| + 2 |b delta x|) * 2^-24 at most; decay is within 2 ulp and its argument
//           rounded twice.

#if defined(GEN_ENGINE_CPU_SELECTIVE_SCAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_SELECTIVE_SCAN_INL_H_
#undef GEN_ENGINE_CPU_SELECTIVE_SCAN_INL_H_
#else
#define GEN_ENGINE_CPU_SELECTIVE_SCAN_INL_H_
#endif

#include <algorithm>

#include "engine/cpu/sequence/selective_scan.h"
#include "engine/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE Lanes16 load_some(const float* p, int64_t n) {
  return n >= kLanes ? load(p) : load_first(p, n);
}
HWY_INLINE void store_some(Lanes16 x, float* p, int64_t n) {
  if (n >= kLanes) {
    store(x, p);
  } else {
    store_first(x, p, n);
  }
}

/// What one row gives to the channels of a job, as the recurrence takes it.
struct ScanRow {
  float delta[kScanChannels];  // of the job's heads
  float decay[kScanChannels];  // the same, where a head has one
  float input[kScanChannels];  // delta x of the job's channels
  float sums[kScanChannels];   // what the job's channels give
};

/// kCount channels of one group: their states from `from` to `to`, both [kCount, N], and `sums`.
/// kOwnRows: `factor` is delta of each channel and `a` its row; otherwise one decay of all.
/// kWhole: N is a multiple of sixteen.
template <bool kOwnRows, int64_t kCount, bool kWhole>
HWY_INLINE void advance(const float* from, float* to, int64_t size, const float* factor,
                        const float* a, const float* input, const float* b, const float* c,
                        float* sums) {
  constexpr auto kSize = static_cast<size_t>(kCount);
  Lanes16 sum[kSize];
  Lanes16 inputs[kSize];
  Lanes16 factors[kSize];
  GEN_UNROLL
  for (int64_t i = 0; i < kCount; ++i) {
    sum[i] = splat(0.0F);
    inputs[i] = splat(input[i]);
    factors[i] = splat(factor[kOwnRows ? i : 0]);
  }
  for (int64_t n = 0; n < size; n += kLanes) {
    const int64_t left = kWhole ? kLanes : size - n;
    const Lanes16 in = load_some(b + n, left);
    const Lanes16 out = load_some(c + n, left);
    GEN_UNROLL
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t at = i * size + n;
      const Lanes16 decay = kOwnRows ? exp(mul(factors[i], load_some(a + at, left))) : factors[i];
      const Lanes16 s = fma(decay, load_some(from + at, left), mul(in, inputs[i]));
      store_some(s, to + at, left);
      sum[i] = fma(s, out, sum[i]);
    }
  }
  GEN_UNROLL
  for (int64_t i = 0; i < kCount; ++i) sums[i] = sum_lanes(sum[i]);
}

/// The job's heads, and for kOwnRows the channels, which are then the same.
HWY_INLINE int64_t first_head(const SelectiveScanJob& job) { return job.begin / job.channels; }
HWY_INLINE int64_t end_head(const SelectiveScanJob& job) {
  return (job.end - 1) / job.channels + 1;
}

/// Fills decay and input from x of all channels and delta of the job's heads.
template <bool kOwnRows>
HWY_INLINE void prepare(const SelectiveScanJob& job, const float* x, ScanRow* row) {
  const int64_t first = first_head(job);
  const int64_t end = end_head(job);
  if constexpr (kOwnRows) {
    for (int64_t i = 0; i < end - first; i += kLanes) {
      const int64_t n = end - first - i;
      store_some(mul(load(row->delta + i), load_some(x + first + i, n)), row->input + i, n);
    }
    return;
  }
  for (int64_t i = 0; i < end - first; i += kLanes) {
    const int64_t n = end - first - i;
    const Lanes16 a = load_some(job.a + first + i, n);
    store_some(exp(mul(load(row->delta + i), a)), row->decay + i, n);
  }
  for (int64_t h = first; h < end; ++h) {
    const int64_t from = std::max(job.begin, h * job.channels);
    const int64_t to = std::min(job.end, (h + 1) * job.channels);
    const Lanes16 delta = splat(row->delta[h - first]);
    for (int64_t p = from; p < to; p += kLanes) {
      store_some(mul(delta, load_some(x + p, to - p)), row->input + (p - job.begin), to - p);
    }
  }
}

/// One row of the job's channels; b and c of all groups.
template <bool kOwnRows, bool kWhole>
HWY_INLINE void step(const SelectiveScanJob& job, const float* from, float* to, const float* b,
                     const float* c, ScanRow* row) {
  const int64_t first = first_head(job);
  const int64_t of_group = job.heads / job.groups * job.channels;  // channels
  const int64_t of_run = kOwnRows ? of_group : job.channels;       // with equal b, c and decay
  for (int64_t p = job.begin; p < job.end;) {
    const int64_t end = std::min(job.end, (p / of_run + 1) * of_run);
    const int64_t group = p / of_group * job.size;
    const float* const factor = kOwnRows ? row->delta : row->decay + (p / job.channels - first);
    const auto some = [&](auto count) {
      constexpr int64_t kCount = decltype(count)::value;
      for (; p + kCount <= end; p += kCount) {
        const int64_t i = p - job.begin;
        advance<kOwnRows, kCount, kWhole>(from + i * job.size, to + i * job.size, job.size,
                                          kOwnRows ? factor + i : factor,
                                          kOwnRows ? job.a + p * job.size : nullptr, row->input + i,
                                          b + group, c + group, row->sums + i);
      }
    };
    some(std::integral_constant<int64_t, 4>());
    some(std::integral_constant<int64_t, 1>());
  }
}

/// y of the job's channels.
template <bool kOwnRows>
HWY_INLINE void finish(const SelectiveScanJob& job, const float* x, const ScanRow& row, float* y) {
  for (int64_t p = job.begin; p < job.end;) {
    const int64_t h = p / job.channels;
    const int64_t end = kOwnRows ? job.end : std::min(job.end, (h + 1) * job.channels);
    for (; p < end; p += kLanes) {
      const int64_t n = end - p;
      const Lanes16 d = kOwnRows ? load_some(job.d + p, n) : splat(job.d[h]);
      const Lanes16 sums = load_some(row.sums + (p - job.begin), n);
      store_some(fma(d, load_some(x + p, n), sums), y + p, n);
    }
    p = end;
  }
}

/// The job's part of a kept row; what heads and groups share is kept by the job that has the first
/// channel of them.
HWY_INLINE void keep_row(const SelectiveScanJob& job, const float* x, const float* b,
                         const ScanRow& row, float* kept) {
  const int64_t all = job.heads * job.channels;
  std::copy(x + job.begin, x + job.end, kept + job.begin);
  for (int64_t h = first_head(job); h < end_head(job); ++h) {
    if (h * job.channels >= job.begin) kept[all + h] = row.delta[h - first_head(job)];
  }
  const int64_t of_group = all / job.groups;
  for (int64_t g = (job.begin + of_group - 1) / of_group; g * of_group < job.end; ++g) {
    std::copy(b + g * job.size, b + (g + 1) * job.size, kept + all + job.heads + g * job.size);
  }
}

template <bool kOwnRows, bool kWhole>
void scan_rows(const SelectiveScanJob& job) {
  const int64_t first = first_head(job);
  const int64_t heads = end_head(job) - first;
  const int64_t all = job.heads * job.channels;
  const int64_t cells = (job.end - job.begin) * job.size;
  float* const write = job.state.write + job.begin * job.size;
  const float* from = job.state.read != nullptr ? job.state.read + job.begin * job.size : write;
  if (job.state.read == nullptr) std::fill(write, write + cells, 0.0F);
  ScanRow row = {};
  for (int64_t i = 0; i < job.state.unsettled; ++i) {
    const float* const kept = job.state.kept + i * job.state.kept_stride;
    std::copy(kept + all + first, kept + all + first + heads, row.delta);
    prepare<kOwnRows>(job, kept, &row);
    const float* const b = kept + all + job.heads;
    step<kOwnRows, kWhole>(job, from, write, b, b, &row);
    from = write;
  }
  const int64_t settled = job.state.settled;
  if (from != write && settled == 0) {
    std::copy(from, from + cells, write);
    from = write;
  }
  float drafted[kScanCells];
  for (int64_t t = 0; t < job.state.rows; ++t) {
    const float* const x = job.x + t * job.x_stride;
    const float* const dt = job.dt + t * job.dt_stride + first;
    const float* const b = job.b + t * job.b_stride;
    for (int64_t i = 0; i < heads; i += kLanes) {
      const int64_t n = heads - i;
      const Lanes16 bias = load_some(job.dt_bias + first + i, n);
      store_some(softplus(add(load_some(dt + i, n), bias)), row.delta + i, n);
    }
    if (t >= settled) {
      keep_row(job, x, b, row, job.state.keep + (t - settled) * job.state.kept_stride);
    }
    float* const to = t < settled ? write : drafted;
    prepare<kOwnRows>(job, x, &row);
    step<kOwnRows, kWhole>(job, from, to, b, job.c + t * job.c_stride, &row);
    from = to;
    finish<kOwnRows>(job, x, row, job.y + t * job.y_stride);
  }
}

inline void selective_scan(const SelectiveScanJob& job) {
  const bool whole = job.size % kLanes == 0;
  if (job.channels == 1) {
    whole ? scan_rows<true, true>(job) : scan_rows<true, false>(job);
  } else {
    whole ? scan_rows<false, true>(job) : scan_rows<false, false>(job);
  }
}

constexpr SelectiveScanKernels kSelectiveScan = {selective_scan};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_SELECTIVE_SCAN_INL_H_
