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
#include "engine/cpu/kv_unpack-inl.h"
#include "engine/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

// Tiles by register count: sixteen lanes are 1 of 32 registers with AVX-512, 2 of 16 with AVX2,
// 4 of 32 with NEON. Few queries (multi-head decode) take more keys or columns at once instead, so
// that enough sums are under way to hide the latency of one.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kTileQueries = 8;
template <size_t kQ>
constexpr size_t kTilesAtOnce = kQ == 8 ? 2 : 4;
template <size_t kQ>
constexpr size_t kTileColumns = kQ == 8   ? 2
                                : kQ == 4 ? 4
                                          : 8;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr size_t kTileQueries = 2;
template <size_t kQ>
constexpr size_t kTilesAtOnce = kQ == 1 ? 4 : 2;
template <size_t kQ>
constexpr size_t kTileColumns = kQ == 1 ? 4 : 2;
#else
constexpr size_t kTileQueries = 1;
template <size_t kQ>
constexpr size_t kTilesAtOnce = 1;
template <size_t kQ>
constexpr size_t kTileColumns = 1;
#endif

/// What is needed soon goes to the second-level cache: requests from there do not wait for the few
/// lines that the first level can have under way.
constexpr int kFetchLevel = 2;

template <size_t kBytes>
HWY_INLINE void fetch(const std::byte* from) {
  for (size_t at = 0; at < kBytes; at += 64) __builtin_prefetch(from + at, 0, kFetchLevel);
}

/// Scores of kT tiles of keys for kQ queries: score_stride floats from one query's to the next's.
template <typename E, size_t kQ, size_t kT>
HWY_INLINE void dot_tiles(const float* const* q, int64_t dims, const std::byte* tile, size_t stride,
                          ptrdiff_t ahead, float* scores, size_t score_stride) {
  constexpr auto kStep = static_cast<size_t>(kLanes);
  Lanes16 acc[kQ][kT];
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    GEN_UNROLL
    for (size_t t = 0; t < kT; ++t) acc[j][t] = splat(0.0F);
  }
  const std::byte* keys[kT];
  GEN_UNROLL
  for (size_t t = 0; t < kT; ++t) keys[t] = tile + t * stride;
  // In the order of addresses, whatever the order of use: the processor follows one place a page.
  const std::byte* next = tile + ahead;
  for (int64_t d = 0; d < dims; ++d) {
    fetch<kT * kStep * sizeof(E)>(next);
    next += kT * kStep * sizeof(E);
    Lanes16 key[kT];
    GEN_UNROLL
    for (size_t t = 0; t < kT; ++t) {
      key[t] = load(reinterpret_cast<const E*>(keys[t]));
      keys[t] += kStep * sizeof(E);
    }
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      const Lanes16 query = splat(q[j][d]);
      GEN_UNROLL
      for (size_t t = 0; t < kT; ++t) acc[j][t] = fma(query, key[t], acc[j][t]);
    }
  }
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    GEN_UNROLL
    for (size_t t = 0; t < kT; ++t) store(acc[j][t], scores + j * score_stride + t * kStep);
  }
}

/// A tile of which only `count` entries from `lane` on belong to the run.
template <typename E, size_t kQ>
HWY_INLINE void dot_part(const float* const* q, int64_t dims, const std::byte* tile, int32_t lane,
                         int32_t count, float* scores) {
  constexpr auto kStep = static_cast<size_t>(kLanes);
  float sums[kQ * kStep];
  dot_tiles<E, kQ, 1>(q, dims, tile, 0, 0, sums, kStep);
  for (size_t j = 0; j < kQ; ++j) {
    std::memcpy(scores + j * kAttentionChunk, sums + j * kStep + lane,
                static_cast<size_t>(count) * sizeof(float));
  }
}

template <typename E, size_t kQ>
HWY_INLINE void dot_run(const float* const* q, int64_t dims, const KvRun& run, size_t stride,
                        float* scores) {
  constexpr size_t kT = kTilesAtOnce<kQ>;
  constexpr auto kAll = static_cast<int32_t>(kT) * kKvTile;
  const std::byte* tile = run.tile;
  float* to = scores + run.slot;
  int32_t left = run.count;
  if (run.lane > 0) {
    const int32_t count = left < kKvTile - run.lane ? left : kKvTile - run.lane;
    dot_part<E, kQ>(q, dims, tile, run.lane, count, to);
    tile += stride;
    to += count;
    left -= count;
  }
  for (; left >= kAll; left -= kAll, tile += kT * stride, to += kAll) {
    dot_tiles<E, kQ, kT>(q, dims, tile, stride, run.ahead, to, kAttentionChunk);
  }
  if constexpr (kT > 1) {
    for (; left >= kKvTile; left -= kKvTile, tile += stride, to += kKvTile) {
      dot_tiles<E, kQ, 1>(q, dims, tile, stride, run.ahead, to, kAttentionChunk);
    }
  }
  if (left > 0) dot_part<E, kQ>(q, dims, tile, 0, left, to);
}

template <typename E>
inline void dots(const float* const* q, int32_t n_q, int32_t dims, const KvRun& run, size_t stride,
                 float* scores) {
  const auto n = static_cast<size_t>(n_q);
  size_t j = 0;
  const auto rows = [&](size_t at) { return scores + at * kAttentionChunk; };
  for (; j + kTileQueries <= n; j += kTileQueries) {
    dot_run<E, kTileQueries>(q + j, dims, run, stride, rows(j));
  }
#if HWY_TARGET == HWY_AVX3
  if (n - j >= 4) {
    dot_run<E, 4>(q + j, dims, run, stride, rows(j));
    j += 4;
  }
  if (n - j >= 2) {
    dot_run<E, 2>(q + j, dims, run, stride, rows(j));
    j += 2;
  }
#endif
  for (; j < n; ++j) dot_run<E, 1>(q + j, dims, run, stride, rows(j));
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

/// Calls step(value, i) for the entries of a run in ascending order, i counting from 0; `value` is
/// the entry's first byte.
template <typename E, typename Step>
HWY_INLINE void each_value(const KvRun& run, size_t stride, int64_t dims, Step step) {
  const size_t row = static_cast<size_t>(dims) * sizeof(E);
  const std::byte* tile = run.tile;
  int32_t lane = run.lane;
  for (int32_t i = 0; i < run.count; tile += stride, lane = 0) {
    const int32_t left = run.count - i;
    const int32_t here = left < kKvTile - lane ? left : kKvTile - lane;
    const std::byte* value = tile + static_cast<size_t>(lane) * row;
    for (const int32_t end = i + here; i < end; ++i, value += row) step(value, i);
  }
}

template <typename E, size_t kQ, size_t kColumns>
HWY_INLINE void weighted_tile(const float* const* p, const KvRun& run, size_t stride, int64_t dims,
                              float* const* out, int64_t column) {
  constexpr auto kStep = static_cast<size_t>(kLanes);
  Lanes16 acc[kQ][kColumns];
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    GEN_UNROLL
    for (size_t c = 0; c < kColumns; ++c) acc[j][c] = load(out[j] + column + c * kStep);
  }
  const float* weight[kQ];
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) weight[j] = p[j] + run.slot;
  // Each pass over the values asks for its share of the next ones, in the order of addresses.
  const std::byte* next = run.tile + run.ahead + column * run.count * int64_t{sizeof(E)};
  each_value<E>(run, stride, dims, [&](const std::byte* at, int32_t i) HWY_ATTR {
    fetch<kColumns * kStep * sizeof(E)>(next);
    next += kColumns * kStep * sizeof(E);
    const E* value = reinterpret_cast<const E*>(at) + column;
    Lanes16 v[kColumns];
    GEN_UNROLL
    for (size_t c = 0; c < kColumns; ++c) {
      v[c] = load(value + c * kStep);
    }
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      const Lanes16 w = splat(weight[j][i]);
      GEN_UNROLL
      for (size_t c = 0; c < kColumns; ++c) acc[j][c] = fma(w, v[c], acc[j][c]);
    }
  });
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    GEN_UNROLL
    for (size_t c = 0; c < kColumns; ++c) store(acc[j][c], out[j] + column + c * kStep);
  }
}

/// The last dims % 16 columns of one query.
template <typename E>
HWY_INLINE void weighted_rest(const float* p, int64_t count, const KvRun& run, size_t stride,
                              int64_t dims, float* out, int64_t column) {
  Lanes16 acc = load_first(out + column, count);
  each_value<E>(run, stride, dims, [&](const std::byte* at, int32_t i) HWY_ATTR {
    const E* value = reinterpret_cast<const E*>(at) + column;
    acc = fma(splat(p[run.slot + i]), load_first(value, count), acc);
  });
  store_first(acc, out + column, count);
}

template <typename E, size_t kQ>
HWY_INLINE void weighted_rows(const float* const* p, int64_t dims, const KvRun& run, size_t stride,
                              float* const* out) {
  constexpr int64_t kWidth = kTileColumns<kQ> * kLanes;
  int64_t column = 0;
  for (; column + kWidth <= dims; column += kWidth) {
    weighted_tile<E, kQ, kTileColumns<kQ>>(p, run, stride, dims, out, column);
  }
  if constexpr (kTileColumns < kQ >> 4) {
    for (; column + 4 * kLanes <= dims; column += 4 * kLanes) {
      weighted_tile<E, kQ, 4>(p, run, stride, dims, out, column);
    }
  }
  for (; column + kLanes <= dims; column += kLanes) {
    weighted_tile<E, kQ, 1>(p, run, stride, dims, out, column);
  }
  if (column < dims) {
    for (size_t j = 0; j < kQ; ++j) {
      weighted_rest<E>(p[j], dims - column, run, stride, dims, out[j], column);
    }
  }
}

template <typename E>
inline void weighted(const float* const* p, int32_t n_q, int32_t dims, const KvRun& run,
                     size_t stride, float* const* out) {
  const auto n = static_cast<size_t>(n_q);
  size_t j = 0;
  for (; j + kTileQueries <= n; j += kTileQueries) {
    weighted_rows<E, kTileQueries>(p + j, dims, run, stride, out + j);
  }
#if HWY_TARGET == HWY_AVX3
  if (n - j >= 4) {
    weighted_rows<E, 4>(p + j, dims, run, stride, out + j);
    j += 4;
  }
  if (n - j >= 2) {
    weighted_rows<E, 2>(p + j, dims, run, stride, out + j);
    j += 2;
  }
#endif
  for (; j < n; ++j) weighted_rows<E, 1>(p + j, dims, run, stride, out + j);
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

constexpr AttentionKernels kAttention = {kTileQueries,
                                         {{nullptr, nullptr},
                                          {nullptr, nullptr},
                                          {unpack_fp8_keys, unpack_fp8_values},
                                          {unpack_q4_keys, unpack_q4_values},
                                          {unpack_q3_keys, unpack_q3_values}},
                                         {dots<float>, dots<uint16_t>},
                                         softmax,
                                         {weighted<float>, weighted<uint16_t>},
                                         merge,
                                         finish};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ATTENTION_INL_H_
