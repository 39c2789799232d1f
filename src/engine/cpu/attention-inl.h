// SPDX-License-Identifier: Apache-2.0
// Bodies of attention.h, compiled once per target.
//   dots      a lane is an entry: tiles of sixteen keys by queries accumulate in registers,
//   elements
//             ascending, so nothing is summed across lanes.
//   weighted  a lane is a column: queries by value columns accumulate in registers over entries
//             ascending.
// Keys and values are widened in registers; how work is cut into tiles never shows in a result.

#if defined(GEN_ENGINE_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ATTENTION_INL_H_
#undef GEN_ENGINE_CPU_ATTENTION_INL_H_
#else
#define GEN_ENGINE_CPU_ATTENTION_INL_H_
#endif

#include <limits>

#include "engine/cpu/attention.h"
#include "engine/cpu/attention_q3-inl.h"
#include "engine/cpu/attention_read-inl.h"
#include "engine/cpu/kv_unpack-inl.h"
#include "engine/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// A tile of which only `count` entries from `lane` on belong to the run.
template <typename Reader, size_t kQ>
HWY_INLINE void dot_part(const float* const* q, int64_t dims, const std::byte* tile,
                         const std::byte* shared, int32_t lane, int32_t count, float* scores) {
  constexpr auto kStep = static_cast<size_t>(kLanes);
  float sums[kQ * kStep];
  Reader::template dot_tiles<kQ, 1>(q, dims, tile, shared, 0, {tile, 0}, sums, kStep);
  for (size_t j = 0; j < kQ; ++j) {
    std::memcpy(scores + j * kAttentionChunk, sums + j * kStep + lane,
                static_cast<size_t>(count) * sizeof(float));
  }
}

template <typename Reader, size_t kQ>
HWY_INLINE void dot_run(const float* const* q, int64_t dims, const KvRun& run, size_t stride,
                        float* scores) {
  constexpr size_t kT = Reader::template kTilesAtOnce<kQ>;
  constexpr auto kAll = static_cast<int32_t>(kT) * kKvTile;
  const std::byte* tile = run.tile;
  const std::byte* shared = run.shared;
  float* to = scores + run.slot;
  int32_t left = run.count;
  if (run.lane > 0) {
    const int32_t count = left < kKvTile - run.lane ? left : kKvTile - run.lane;
    dot_part<Reader, kQ>(q, dims, tile, shared, run.lane, count, to);
    tile += stride;
    shared += run.shared_stride;
    to += count;
    left -= count;
  }
  for (; left >= kAll; left -= kAll, tile += kT * stride, to += kAll) {
    Reader::template dot_tiles<kQ, kT>(q, dims, tile, shared, stride,
                                       ahead_of(run, stride, tile - run.tile), to, kAttentionChunk);
    shared += kT * run.shared_stride;
  }
  if constexpr (kT > 1) {
    for (; left >= kKvTile; left -= kKvTile, tile += stride, to += kKvTile) {
      Reader::template dot_tiles<kQ, 1>(q, dims, tile, shared, stride,
                                        ahead_of(run, stride, tile - run.tile), to,
                                        kAttentionChunk);
      shared += run.shared_stride;
    }
  }
  if (left > 0) dot_part<Reader, kQ>(q, dims, tile, shared, 0, left, to);
}

template <typename Reader>
inline void dots(const float* const* q, int32_t n_q, int32_t dims, const KvRun& run, size_t stride,
                 float* scores) {
  const auto n = static_cast<size_t>(n_q);
  size_t j = 0;
  const auto rows = [&](size_t at) { return scores + at * kAttentionChunk; };
  for (; j + kTileQueries <= n; j += kTileQueries) {
    dot_run<Reader, kTileQueries>(q + j, dims, run, stride, rows(j));
  }
#if HWY_TARGET == HWY_AVX3
  if (n - j >= 4) {
    dot_run<Reader, 4>(q + j, dims, run, stride, rows(j));
    j += 4;
  }
  if (n - j >= 2) {
    dot_run<Reader, 2>(q + j, dims, run, stride, rows(j));
    j += 2;
  }
#endif
  for (; j < n; ++j) dot_run<Reader, 1>(q + j, dims, run, stride, rows(j));
}

/// scale * score, capped, plus the weight of the slot.
HWY_INLINE Lanes16 ruled_score(Lanes16 x, const ScoreRule& rule, int32_t slot) {
  x = mul(x, splat(rule.scale));
  if (rule.soft_cap != 0.0F) {
    const Lanes16 cap = splat(rule.soft_cap);
    x = mul(cap, tanh(div(x, cap)));
  }
  return rule.weights != nullptr ? add(x, load(rule.weights + slot)) : x;
}

inline SoftmaxPart softmax(float* scores, int32_t begin, int32_t end, const ScoreRule& rule) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  constexpr int32_t kStep = static_cast<int32_t>(kLanes);
  const int32_t first = begin / kStep * kStep;
  const int32_t last = (end + kStep - 1) / kStep * kStep;
  // What lies beside [begin, end) may be anything; it is overwritten below.
  Lanes16 maxima = splat(kMinusInfinity);
  for (int32_t i = first; i < last; i += kStep) {
    const Lanes16 x = ruled_score(load(scores + i), rule, i);
    store(x, scores + i);
    if (i < begin || i + kStep > end) continue;
    maxima = max(maxima, x);
  }
  for (int32_t i = first; i < begin; ++i) scores[i] = kMinusInfinity;
  for (int32_t i = end; i < last; ++i) scores[i] = kMinusInfinity;
  if (first < begin) maxima = max(maxima, load(scores + first));
  if (end < last) maxima = max(maxima, load(scores + last - kStep));
  const float largest = max_lanes(maxima);
  // Without a largest score all are -infinity, or NaN, which the maximum may have passed over.
  const Lanes16 shift = splat(largest == kMinusInfinity ? 0.0F : largest);
  Lanes16 sum = splat(0.0F);
  for (int32_t i = first; i < last; i += kStep) {
    const Lanes16 p = exp_weight(sub(load(scores + i), shift));
    sum = add(sum, p);
    store(p, scores + i);
  }
  const float total = sum_lanes(sum);
  return {largest == kMinusInfinity && total != 0.0F ? total : largest, total};
}

template <typename Reader, size_t kQ>
HWY_INLINE void weighted_rows(const float* const* p, int64_t dims, const KvRun& run, size_t stride,
                              float* const* out) {
  constexpr int64_t kWidth = kTileColumns<kQ> * kLanes;
  int64_t column = 0;
  for (; column + kWidth <= dims; column += kWidth) {
    Reader::template weighted_tile<kQ, kTileColumns<kQ>>(p, run, stride, dims, out, column);
  }
  if constexpr (kTileColumns < kQ >> 4) {
    for (; column + 4 * kLanes <= dims; column += 4 * kLanes) {
      Reader::template weighted_tile<kQ, 4>(p, run, stride, dims, out, column);
    }
  }
  for (; column + kLanes <= dims; column += kLanes) {
    Reader::template weighted_tile<kQ, 1>(p, run, stride, dims, out, column);
  }
  if (column < dims) {
    for (size_t j = 0; j < kQ; ++j) {
      Reader::weighted_rest(p[j], dims - column, run, stride, dims, out[j], column);
    }
  }
}

template <typename Reader>
inline void weighted(const float* const* p, int32_t n_q, int32_t dims, const KvRun& run,
                     size_t stride, float* const* out) {
  const auto n = static_cast<size_t>(n_q);
  size_t j = 0;
  for (; j + kTileQueries <= n; j += kTileQueries) {
    weighted_rows<Reader, kTileQueries>(p + j, dims, run, stride, out + j);
  }
#if HWY_TARGET == HWY_AVX3
  if (n - j >= 4) {
    weighted_rows<Reader, 4>(p + j, dims, run, stride, out + j);
    j += 4;
  }
  if (n - j >= 2) {
    weighted_rows<Reader, 2>(p + j, dims, run, stride, out + j);
    j += 2;
  }
#endif
  for (; j < n; ++j) weighted_rows<Reader, 1>(p + j, dims, run, stride, out + j);
}

inline void merge(SoftmaxPart* state, float* sums, const SoftmaxPart& part, const float* part_sums,
                  int32_t dims) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  if (part.max == kMinusInfinity) return;
  if (state->max == kMinusInfinity) {
    *state = part;
    std::memcpy(sums, part_sums, static_cast<size_t>(dims) * sizeof(float));
    return;
  }
  const float largest = state->max > part.max ? state->max : part.max;
  float factors[kLanes] = {state->max - largest, part.max - largest};
  store(exp(load(factors)), factors);
  const Lanes16 old_factor = splat(factors[0]);
  const Lanes16 new_factor = splat(factors[1]);
  state->max = largest;
  state->sum = std::fma(part.sum, factors[1], state->sum * factors[0]);
  int32_t i = 0;
  for (; i + kLanes <= dims; i += static_cast<int32_t>(kLanes)) {
    store(fma(load(part_sums + i), new_factor, mul(load(sums + i), old_factor)), sums + i);
  }
  if (i < dims) {
    const int64_t rest = dims - i;
    const Lanes16 old = mul(load_first(sums + i, rest), old_factor);
    store_first(fma(load_first(part_sums + i, rest), new_factor, old), sums + i, rest);
  }
}

inline void finish(const SoftmaxPart& state, const float* sums, float* out, int32_t dims) {
  if (state.max == -std::numeric_limits<float>::infinity()) {
    std::memset(out, 0, static_cast<size_t>(dims) * sizeof(float));
    return;
  }
  const Lanes16 factor = splat(1.0F / state.sum);
  int32_t i = 0;
  for (; i + kLanes <= dims; i += static_cast<int32_t>(kLanes)) {
    store(mul(load(sums + i), factor), out + i);
  }
  if (i < dims) store_first(mul(load_first(sums + i, dims - i), factor), out + i, dims - i);
}

using Floats = PlainReader<float>;
using Halves = PlainReader<uint16_t>;
using Fp8 = ScaledReader<Fp8Codes>;
using Q4 = ScaledReader<Q4Codes>;
using Q3 = Q3Reader;
using UnpackedFp8 = ScaledReader<UnpackedLevels<0>>;
using UnpackedQ4 = ScaledReader<UnpackedLevels<kQ4Group>>;

constexpr AttentionKernels kAttention = {
    .tile_queries = kTileQueries,
    .direct_queries = kTileQueries,
    .dots = {dots<Floats>, dots<Halves>, dots<Fp8>, dots<Q4>, dots<Q3>},
    .weighted = {weighted<Floats>, weighted<Halves>, weighted<Fp8>, weighted<Q4>, weighted<Q3>},
    .unpack = {{},
               {},
               {unpack_fp8, unpack_fp8},
               {unpack_q4_keys, unpack_q4_values},
               {unpack_q3_keys, unpack_q3_values}},
    .unpacked_dots = {nullptr, nullptr, dots<UnpackedFp8>, dots<UnpackedQ4>, dots<Floats>},
    .unpacked_weighted = {nullptr, nullptr, weighted<UnpackedFp8>, weighted<UnpackedQ4>,
                          weighted<Floats>},
    .softmax = softmax,
    .merge = merge,
    .finish = finish};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ATTENTION_INL_H_
