// SPDX-License-Identifier: Apache-2.0
// Bodies of attention.h, compiled once per target.
//   dots      a tile of queries by a tile of entries accumulates in registers, sixteen lanes each,
//             elements ascending; the tile's sums come out of a transposing tree, which adds lanes
//             in the order of sum_lanes.
//   weighted  a tile of queries by a tile of value columns accumulates in registers over entries
//             ascending, so nothing is reduced across lanes.
// Keys and values are widened in registers; how tiles are cut never shows in a result.

#if defined(GEN_ENGINE_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ATTENTION_INL_H_
#undef GEN_ENGINE_CPU_ATTENTION_INL_H_
#else
#define GEN_ENGINE_CPU_ATTENTION_INL_H_
#endif

#include <limits>

#include "engine/cpu/attention.h"
#include "engine/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

// Tiles by register count: sixteen lanes are 1 of 32 registers with AVX-512, 2 of 16 with AVX2,
// 4 of 32 with NEON. One query alone (multi-head decode) takes longer tiles instead.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kTileQueries = 4;
template <size_t kQ>
constexpr size_t kTileEntries = 16 / kQ;
template <size_t kQ>
constexpr size_t kTileColumns = kQ <= 2 ? 8 : 4;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr size_t kTileQueries = 2;
template <size_t kQ>
constexpr size_t kTileEntries = kQ == 1 ? 4 : 2;
template <size_t kQ>
constexpr size_t kTileColumns = kQ == 1 ? 4 : 2;
#else
constexpr size_t kTileQueries = 1;
template <size_t kQ>
constexpr size_t kTileEntries = 1;
template <size_t kQ>
constexpr size_t kTileColumns = 1;
#endif

/// Entries that are asked for ahead of their use.
constexpr size_t kFetchEntries = 16;

/// out[i] = sum_lanes of the i-th argument.
#if HWY_TARGET == HWY_AVX3
// Blocks of four lanes: [w0 w1 | x0 x1] after the first halving, [w x y z] after the second.
HWY_INLINE Native quarter_sums(Native w, Native x, Native y, Native z) {
  const NativeTag d;
  const Native wy = hn::Add(hn::ConcatLowerLower(d, y, w), hn::ConcatUpperUpper(d, y, w));
  const Native xz = hn::Add(hn::ConcatLowerLower(d, z, x), hn::ConcatUpperUpper(d, z, x));
  return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(xz), wy),
                 hn::OddEvenBlocks(xz, hn::SwapAdjacentBlocks(wy)));
}
/// Lane i of the result: the sum of a[i].
HWY_INLINE Native sums16(const Lanes16* a) {
  const NativeTag d;
  const hn::Repartition<double, NativeTag> dd;
  const Native c0 = quarter_sums(a[0], a[4], a[8], a[12]);
  const Native c1 = quarter_sums(a[1], a[5], a[9], a[13]);
  const Native c2 = quarter_sums(a[2], a[6], a[10], a[14]);
  const Native c3 = quarter_sums(a[3], a[7], a[11], a[15]);
  const auto c01 =
      hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, c0, c1), hn::InterleaveUpper(d, c0, c1)));
  const auto c23 =
      hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, c2, c3), hn::InterleaveUpper(d, c2, c3)));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(dd, c01, c23)),
                 hn::BitCast(d, hn::InterleaveUpper(dd, c01, c23)));
}
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Given [a b] and [c d] with four lanes each, the sums in the order a, c, b, d.
HWY_INLINE void sums_of_halves(hn::Vec<hn::FixedTag<float, 8>> ab,
                               hn::Vec<hn::FixedTag<float, 8>> cd, float* out) {
  const hn::FixedTag<float, 8> d8;
  const hn::FixedTag<float, 4> d4;
  const hn::FixedTag<double, 2> dd;
  const auto pairs = hn::Add(hn::InterleaveLower(d8, ab, cd), hn::InterleaveUpper(d8, ab, cd));
  const auto ac = hn::BitCast(dd, hn::LowerHalf(d4, pairs));
  const auto bd = hn::BitCast(dd, hn::UpperHalf(d4, pairs));
  hn::StoreU(hn::Add(hn::BitCast(d4, hn::InterleaveLower(dd, ac, bd)),
                     hn::BitCast(d4, hn::InterleaveUpper(dd, ac, bd))),
             d4, out);
}
#endif

HWY_INLINE void sums4(Lanes16 a, Lanes16 b, Lanes16 c, Lanes16 e, float* out) {
#if HWY_TARGET == HWY_AVX3
  const hn::FixedTag<float, 8> half;
  const Native quarters = quarter_sums(a, c, b, e);
  sums_of_halves(hn::LowerHalf(half, quarters), hn::UpperHalf(half, quarters), out);
#elif HWY_TARGET == HWY_AVX2
  const hn::FixedTag<float, 8> d;
  const Native a8 = hn::Add(a.lo, a.hi);
  const Native b8 = hn::Add(b.lo, b.hi);
  const Native c8 = hn::Add(c.lo, c.hi);
  const Native e8 = hn::Add(e.lo, e.hi);
  sums_of_halves(hn::Add(hn::ConcatLowerLower(d, c8, a8), hn::ConcatUpperUpper(d, c8, a8)),
                 hn::Add(hn::ConcatLowerLower(d, e8, b8), hn::ConcatUpperUpper(d, e8, b8)), out);
#else
  out[0] = sum_lanes(a);
  out[1] = sum_lanes(b);
  out[2] = sum_lanes(c);
  out[3] = sum_lanes(e);
#endif
}

/// Writes the sums of a tile to score rows.
template <size_t kQ, size_t kE>
HWY_INLINE void store_sums(const Lanes16 (&acc)[kQ][kE], float* scores) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kQ * kE == 16) {
    float sums[16];
    hn::StoreU(sums16(&acc[0][0]), NativeTag(), sums);
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      std::memcpy(scores + j * kAttentionChunk, sums + kE * j, kE * sizeof(float));
    }
    return;
  }
#endif
  if constexpr (kE % 4 == 0) {
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      GEN_UNROLL
      for (size_t e = 0; e < kE; e += 4) {
        sums4(acc[j][e], acc[j][e + 1], acc[j][e + 2], acc[j][e + 3],
              scores + j * kAttentionChunk + e);
      }
    }
  } else if constexpr (kQ == 2 && kE == 2) {
    float sums[4];
    sums4(acc[0][0], acc[0][1], acc[1][0], acc[1][1], sums);
    std::memcpy(scores, sums, 2 * sizeof(float));
    std::memcpy(scores + kAttentionChunk, sums + 2, 2 * sizeof(float));
  } else {
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      GEN_UNROLL
      for (size_t e = 0; e < kE; ++e) scores[j * kAttentionChunk + e] = sum_lanes(acc[j][e]);
    }
  }
}

template <typename E, size_t kQ, size_t kE>
HWY_INLINE void dot_tile(const float* const* q, int64_t dims, const std::byte* keys, size_t stride,
                         float* scores) {
  Lanes16 acc[kQ][kE];
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    GEN_UNROLL
    for (size_t e = 0; e < kE; ++e) acc[j][e] = splat(0.0F);
  }
  // A pointer for four entries: their addresses are then base + 0, 1, 2 or 3 strides.
  constexpr size_t kGroups = (kE + 3) / 4;
  const std::byte* base[kGroups];
  GEN_UNROLL
  for (size_t g = 0; g < kGroups; ++g) base[g] = keys + 4 * g * stride;
  int64_t d = 0;
  for (; d + kLanes <= dims; d += kLanes) {
    Lanes16 query[kQ];
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) query[j] = load(q[j] + d);
    GEN_UNROLL
    for (size_t e = 0; e < kE; ++e) {
      const Lanes16 key = load(reinterpret_cast<const E*>(base[e / 4] + (e % 4) * stride));
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) acc[j][e] = fma(query[j], key, acc[j][e]);
    }
    GEN_UNROLL
    for (size_t g = 0; g < kGroups; ++g) base[g] += static_cast<size_t>(kLanes) * sizeof(E);
  }
  if (d < dims) {
    GEN_UNROLL
    for (size_t e = 0; e < kE; ++e) {
      const auto* from = reinterpret_cast<const E*>(base[e / 4] + (e % 4) * stride);
      const Lanes16 key = load_first(from, dims - d);
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) {
        acc[j][e] = fma(load_first(q[j] + d, dims - d), key, acc[j][e]);
      }
    }
  }
  store_sums<kQ, kE>(acc, scores);
}

/// Asks for entries that are needed soon: between entries lie other heads, which the processor's
/// own prefetching does not skip. An address past the end does no harm.
template <typename E>
HWY_INLINE void fetch_rows(const std::byte* from, size_t count, int64_t dims, size_t stride) {
  constexpr size_t kLine = 64;
  const size_t bytes = static_cast<size_t>(dims) * sizeof(E);
  for (size_t e = 0; e < count; ++e, from += stride) {
    for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + at);
  }
}

template <typename E, size_t kQ, bool kFetch>
HWY_INLINE void dot_rows(const float* const* q, int64_t dims, const KvRun& run, size_t stride,
                         float* scores) {
  constexpr size_t kE = kTileEntries<kQ>;
  const auto count = static_cast<size_t>(run.count);
  const std::byte* keys = run.base;
  float* to = scores + run.slot;
  size_t i = 0;
  for (; i + kE <= count; i += kE, keys += kE * stride) {
    if (kFetch) fetch_rows<E>(keys + kFetchEntries * stride, kE, dims, stride);
    dot_tile<E, kQ, kE>(q, dims, keys, stride, to + i);
  }
  if constexpr (kE > 4) {
    for (; i + 4 <= count; i += 4, keys += 4 * stride) {
      dot_tile<E, kQ, 4>(q, dims, keys, stride, to + i);
    }
  }
  for (; i < count; ++i, keys += stride) {
    dot_tile<E, kQ, 1>(q, dims, keys, stride, to + i);
  }
}

/// Tiles of query rows; the first one asks for what is to come, the others find it near.
template <typename E, size_t kQ>
HWY_INLINE void dot_first(const float* const* q, size_t* done, int64_t dims, const KvRun& run,
                          size_t stride, float* scores) {
  const size_t j = *done;
  if (j == 0) {
    dot_rows<E, kQ, true>(q, dims, run, stride, scores);
  } else {
    dot_rows<E, kQ, false>(q + j, dims, run, stride, scores + j * kAttentionChunk);
  }
  *done = j + kQ;
}

template <typename E>
inline void dots(const float* const* q, int32_t n_q, int32_t dims, const KvRun& run, size_t stride,
                 float* scores) {
  const auto n = static_cast<size_t>(n_q);
  size_t j = 0;
  while (j + kTileQueries <= n) dot_first<E, kTileQueries>(q, &j, dims, run, stride, scores);
#if HWY_TARGET == HWY_AVX3
  if (n - j >= 2) dot_first<E, 2>(q, &j, dims, run, stride, scores);
#endif
  while (j < n) dot_first<E, 1>(q, &j, dims, run, stride, scores);
}

inline SoftmaxPart softmax(float* scores, int32_t begin, int32_t end, const ScoreRule& rule) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  constexpr int32_t kStep = static_cast<int32_t>(kLanes);
  const int32_t first = begin / kStep * kStep;
  const int32_t last = (end + kStep - 1) / kStep * kStep;
  const Lanes16 scale = splat(rule.scale);
  const Lanes16 cap = splat(rule.soft_cap);
  // What lies beside [begin, end) may be anything; it is overwritten below.
  for (int32_t i = first; i < last; i += kStep) {
    Lanes16 x = mul(load(scores + i), scale);
    if (rule.soft_cap != 0.0F) x = mul(cap, tanh(div(x, cap)));
    if (rule.weights != nullptr) x = add(x, load(rule.weights + i));
    store(x, scores + i);
  }
  for (int32_t i = first; i < begin; ++i) scores[i] = kMinusInfinity;
  for (int32_t i = end; i < last; ++i) scores[i] = kMinusInfinity;
  Lanes16 maxima = load(scores + first);
  for (int32_t i = first + kStep; i < last; i += kStep) maxima = max(maxima, load(scores + i));
  const float largest = max_lanes(maxima);
  // Without a largest score all are -infinity, or NaN, which the maximum may have passed over.
  const Lanes16 shift = splat(largest == kMinusInfinity ? 0.0F : largest);
  Lanes16 sum = splat(0.0F);
  for (int32_t i = first; i < last; i += kStep) {
    const Lanes16 p = exp(sub(load(scores + i), shift));
    sum = add(sum, p);
    store(p, scores + i);
  }
  const float total = sum_lanes(sum);
  return {largest == kMinusInfinity && total != 0.0F ? total : largest, total};
}

template <typename E, size_t kQ, size_t kColumns>
HWY_INLINE void weighted_tile(const float* const* p, const KvRun& run, size_t stride,
                              const std::byte* values, float* const* out, int64_t column) {
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
  for (int32_t i = 0; i < run.count; ++i, values += stride) {
    const E* value = reinterpret_cast<const E*>(values) + column;
    fetch_rows<E>(reinterpret_cast<const std::byte*>(value) + kFetchEntries / 2 * stride, 1,
                  kColumns * kLanes, stride);
    Lanes16 v[kColumns];
    GEN_UNROLL
    for (size_t c = 0; c < kColumns; ++c) v[c] = load(value + c * kStep);
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      const Lanes16 w = splat(weight[j][i]);
      GEN_UNROLL
      for (size_t c = 0; c < kColumns; ++c) acc[j][c] = fma(w, v[c], acc[j][c]);
    }
  }
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    GEN_UNROLL
    for (size_t c = 0; c < kColumns; ++c) store(acc[j][c], out[j] + column + c * kStep);
  }
}

/// The last dims % 16 columns of one query.
template <typename E>
HWY_INLINE void weighted_rest(const float* p, int64_t count, const KvRun& run, size_t stride,
                              float* out, int64_t column) {
  Lanes16 acc = load_first(out + column, count);
  const std::byte* values = run.base;
  for (int32_t i = 0; i < run.count; ++i, values += stride) {
    const E* value = reinterpret_cast<const E*>(values) + column;
    acc = fma(splat(p[run.slot + i]), load_first(value, count), acc);
  }
  store_first(acc, out + column, count);
}

template <typename E, size_t kQ>
HWY_INLINE void weighted_rows(const float* const* p, int64_t dims, const KvRun& run, size_t stride,
                              float* const* out) {
  constexpr int64_t kWidth = kTileColumns<kQ> * kLanes;
  int64_t column = 0;
  for (; column + kWidth <= dims; column += kWidth) {
    weighted_tile<E, kQ, kTileColumns<kQ>>(p, run, stride, run.base, out, column);
  }
  if constexpr (kTileColumns < kQ >> 4) {
    for (; column + 4 * kLanes <= dims; column += 4 * kLanes) {
      weighted_tile<E, kQ, 4>(p, run, stride, run.base, out, column);
    }
  }
  for (; column + kLanes <= dims; column += kLanes) {
    weighted_tile<E, kQ, 1>(p, run, stride, run.base, out, column);
  }
  if (column < dims) {
    for (size_t j = 0; j < kQ; ++j) {
      weighted_rest<E>(p[j], dims - column, run, stride, out[j], column);
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

constexpr AttentionKernels kAttention = {kTileQueries, {dots<float>, dots<uint16_t>},
                                         softmax,      {weighted<float>, weighted<uint16_t>},
                                         merge,        finish};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ATTENTION_INL_H_
