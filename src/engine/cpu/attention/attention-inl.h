// SPDX-License-Identifier: Apache-2.0
// Bodies of attention.h, compiled once per target.
//   dots      a lane is an entry: tiles of sixteen keys by queries accumulate in registers over
//             elements ascending, so nothing is summed across lanes.
//   weighted  a lane is a column: queries by value columns accumulate in registers over entries
//             ascending.
// Keys and values are widened in registers. The result never depends on the tiling.

#if defined(GEN_ENGINE_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ATTENTION_INL_H_
#undef GEN_ENGINE_CPU_ATTENTION_INL_H_
#else
#define GEN_ENGINE_CPU_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/cpu/attention/attention.h"
#include "engine/cpu/attention/attention_q3-inl.h"
#include "engine/cpu/attention/attention_read-inl.h"
#include "engine/cpu/attention/attention_scaled-inl.h"
#include "engine/cpu/attention/kv_unpack-inl.h"
#include "engine/cpu/base/kernels.h"
#include "engine/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// Calls use(kQ as a type, first) for each block of the n_q queries.
template <typename Use>
HWY_INLINE void each_block(int32_t n_q, Use use) {
  const int64_t n = n_q;
  int64_t j = 0;
  for (; j + int64_t{kTileQueries} <= n; j += int64_t{kTileQueries}) {
    use(std::integral_constant<size_t, kTileQueries>(), j);
  }
#if HWY_TARGET == HWY_AVX3
  if (n - j >= 4) {
    use(std::integral_constant<size_t, 4>(), j);
    j += 4;
  }
  if (n - j >= 2) {
    use(std::integral_constant<size_t, 2>(), j);
    j += 2;
  }
#endif
  for (; j < n; ++j) use(std::integral_constant<size_t, 1>(), j);
}

/// Transposes a block of queries: element d of all queries, then element d + 1, so that a kernel
/// needs one pointer.
inline void pack(const float* const* q, int32_t n_q, int32_t dims, float* packed) {
  each_block(n_q, [&](auto block, int64_t first) HWY_ATTR {
    constexpr size_t kQ = decltype(block)::value;
    float* to = packed + first * dims;
    for (size_t j = 0; j < kQ; ++j) {
      const float* query = q[first + static_cast<int64_t>(j)];
      for (int64_t d = 0; d < dims; ++d) to[d * int64_t{kQ} + static_cast<int64_t>(j)] = query[d];
    }
  });
}

/// A tile in which only `count` entries from `lane` on belong to the run.
template <typename Reader, size_t kQ>
HWY_INLINE void dot_lanes(const float* q, int64_t dims, const std::byte* tile,
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
HWY_INLINE void dot_run(const float* q, int64_t dims, const KvRun& run, size_t stride,
                        float* scores) {
  constexpr size_t kT = Reader::template kTilesAtOnce<kQ>;
  const std::byte* tile = run.tile;
  const std::byte* shared = run.shared;
  float* to = scores + run.slot;
  int32_t left = run.count;
  if (run.lane > 0) {
    const int32_t count = left < kKvTile - run.lane ? left : kKvTile - run.lane;
    dot_lanes<Reader, kQ>(q, dims, tile, shared, run.lane, count, to);
    tile += stride;
    shared += run.shared_stride;
    to += count;
    left -= count;
  }
  const auto tiles = [&](auto at_once, int32_t keep) HWY_ATTR {
    constexpr size_t kTiles = decltype(at_once)::value;
    constexpr auto kEntries = static_cast<int32_t>(kTiles) * kKvTile;
    for (; left >= kEntries && left != keep; left -= kEntries) {
      Reader::template dot_tiles<kQ, kTiles>(q, dims, tile, shared, stride,
                                             ahead_of(run, stride, tile - run.tile), to,
                                             kAttentionChunk);
      tile += kTiles * stride;
      shared += kTiles * run.shared_stride;
      to += kEntries;
    }
  };
  if constexpr (kT == 3) {
    // Splits sixteen tiles into four times three and twice two, so that no single one is left.
    tiles(std::integral_constant<size_t, 3>(), 4 * kKvTile);
    tiles(std::integral_constant<size_t, 2>(), 0);
  } else {
    tiles(std::integral_constant<size_t, kT>(), 0);
  }
  if constexpr (kT > 1) tiles(std::integral_constant<size_t, 1>(), 0);
  if (left > 0) dot_lanes<Reader, kQ>(q, dims, tile, shared, 0, left, to);
}

template <typename Reader>
inline void dots(const float* packed, int32_t n_q, int32_t dims, const KvRun& run, size_t stride,
                 float* scores) {
  each_block(n_q, [&](auto block, int64_t first) HWY_ATTR {
    dot_run<Reader, decltype(block)::value>(packed + first * dims, dims, run, stride,
                                            scores + first * kAttentionChunk);
  });
}

/// Scores of sixteen slots in base 2: raw scores times log2(e) times a scale >= 0. This is
/// monotonic, so the largest raw score gives the largest score.
struct ScaledScores {
  static constexpr bool kLargestIsRaw = true;
  const float factor;

  explicit HWY_INLINE ScaledScores(const ScoreRule& rule) : factor(rule.scale * kLog2E) {}
  /// The scores minus `shift`.
  HWY_INLINE Lanes16 at(const float* scores, int32_t slot, Lanes16 shift) const {
    return fma(load(scores + slot), splat(factor), sub(splat(0.0F), shift));
  }
};

/// Scores with a soft cap and log-weights; equal to the simple ones if both are off.
struct RuledScores {
  static constexpr bool kLargestIsRaw = false;
  const float factor;
  const float cap;  // 0 is off
  const float* const weights;

  explicit HWY_INLINE RuledScores(const ScoreRule& rule)
      : factor(rule.soft_cap == 0.0F ? rule.scale * kLog2E : rule.scale),
        cap(rule.soft_cap),
        weights(rule.weights) {}
  HWY_INLINE Lanes16 at(const float* scores, int32_t slot, Lanes16 shift) const {
    const Lanes16 x = load(scores + slot);
    const Lanes16 weight =
        weights == nullptr ? splat(0.0F) : mul(load(weights + slot), splat(kLog2E));
    const Lanes16 down = sub(weight, shift);
    if (cap == 0.0F) return fma(x, splat(factor), down);
    const Lanes16 capped = tanh(div(mul(x, splat(factor)), splat(cap)));
    return fma(capped, splat(cap * kLog2E), down);
  }
};

/// For each group of sixteen slots that overlaps [begin, end): whole(slot) if the range covers the
/// group, masked(slot, from, to) if it covers only [from, to).
template <typename Whole, typename Masked>
HWY_INLINE void each_group(SlotRange seen, Whole whole, Masked masked) {
  constexpr int32_t kStep = static_cast<int32_t>(kLanes);
  int32_t i = (seen.begin + kStep - 1) / kStep * kStep;
  if (seen.begin < i) masked(i - kStep, seen.begin, std::min(i, seen.end));
  for (; i + kStep <= seen.end; i += kStep) whole(i);
  if (i < seen.end) masked(i, i, seen.end);
}

/// x for the slots of the group in [from, to), `otherwise` for the others.
HWY_INLINE Lanes16 only(Lanes16 x, int32_t group, int32_t from, int32_t to, float otherwise) {
  float lanes[kLanes];
  store(x, lanes);
  for (int32_t i = 0; i < static_cast<int32_t>(kLanes); ++i) {
    if (group + i < from || group + i >= to) lanes[i] = otherwise;
  }
  return load(lanes);
}

template <typename Rule>
HWY_INLINE float largest_score(const float* scores, SlotRange seen, const Rule& rule) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const auto score = [&](int32_t i) HWY_ATTR {
    return Rule::kLargestIsRaw ? load(scores + i) : rule.at(scores, i, splat(0.0F));
  };
  Lanes16 maxima = splat(kMinusInfinity);
  each_group(
      seen, [&](int32_t i) HWY_ATTR { maxima = max(maxima, score(i)); },
      [&](int32_t i, int32_t from, int32_t to)
          HWY_ATTR { maxima = max(maxima, only(score(i), i, from, to, kMinusInfinity)); });
  const float largest = max_lanes(maxima);
  return Rule::kLargestIsRaw ? largest * rule.factor : largest;
}

template <typename Rule>
HWY_INLINE SoftmaxPartial softmax_row(float* scores, SlotRange seen, float largest,
                                      const Rule& rule) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  // A maximum of -infinity means that all scores are -infinity or NaN, which the maximum may skip.
  const Lanes16 shift = splat(largest == kMinusInfinity ? 0.0F : largest);
  Lanes16 sum = splat(0.0F);
  const auto keep = [&](int32_t i, Lanes16 p) HWY_ATTR {
    sum = add(sum, p);
    store(p, scores + i);
  };
  each_group(
      seen, [&](int32_t i) HWY_ATTR { keep(i, exp2_weight(rule.at(scores, i, shift))); },
      [&](int32_t i, int32_t from, int32_t to)
          HWY_ATTR { keep(i, only(exp2_weight(rule.at(scores, i, shift)), i, from, to, 0.0F)); });
  const float total = sum_lanes(sum);
  return {largest == kMinusInfinity && total != 0.0F ? total : largest, total};
}

/// Finds the maxima of a few rows first, to hide the latency of each row's reduction.
template <typename Rule>
HWY_INLINE void softmax_rows(float* scores, const SlotRange* seen, int32_t n_q, const Rule& rule,
                             SoftmaxPartial* partials) {
  constexpr int32_t kRows = 8;
  for (int32_t first = 0; first < n_q; first += kRows) {
    const int32_t end = std::min(n_q, first + kRows);
    float largest[kRows];
    for (int32_t j = first; j < end; ++j) {
      if (seen[j].begin >= seen[j].end) continue;
      largest[j - first] = largest_score(scores + j * kAttentionChunk, seen[j], rule);
    }
    for (int32_t j = first; j < end; ++j) {
      if (seen[j].begin >= seen[j].end) {
        partials[j] = {-std::numeric_limits<float>::infinity(), 0.0F};
      } else {
        partials[j] = softmax_row(scores + j * kAttentionChunk, seen[j], largest[j - first], rule);
      }
    }
  }
}

inline void softmax(float* scores, const SlotRange* seen, int32_t n_q, const ScoreRule& rule,
                    SoftmaxPartial* partials) {
  if (rule.soft_cap == 0.0F && rule.weights == nullptr && rule.scale >= 0.0F) {
    softmax_rows(scores, seen, n_q, ScaledScores(rule), partials);
  } else {
    softmax_rows(scores, seen, n_q, RuledScores(rule), partials);
  }
}

template <typename Reader, size_t kQ>
HWY_INLINE void weighted_rows(const float* p, int64_t dims, const KvRun& run, size_t stride,
                              float* out, int64_t out_stride) {
  constexpr int64_t kWidth = kTileColumns<kQ> * kLanes;
  int64_t column = 0;
  for (; column + kWidth <= dims; column += kWidth) {
    Reader::template weighted_tile<kQ, kTileColumns<kQ>>(p, run, stride, dims, out, out_stride,
                                                         column);
  }
  if constexpr (kTileColumns < kQ >> 4) {
    for (; column + 4 * kLanes <= dims; column += 4 * kLanes) {
      Reader::template weighted_tile<kQ, 4>(p, run, stride, dims, out, out_stride, column);
    }
  }
  for (; column + kLanes <= dims; column += kLanes) {
    Reader::template weighted_tile<kQ, 1>(p, run, stride, dims, out, out_stride, column);
  }
  if (column < dims) {
    for (int64_t j = 0; j < int64_t{kQ}; ++j) {
      Reader::weighted_rest(p + j * kAttentionChunk, dims - column, run, stride, dims,
                            out + j * out_stride, column);
    }
  }
}

template <typename Reader>
inline void weighted(const float* p, int32_t n_q, int32_t dims, const KvRun& run, size_t stride,
                     float* out, int64_t out_stride) {
  each_block(n_q, [&](auto block, int64_t first) HWY_ATTR {
    weighted_rows<Reader, decltype(block)::value>(p + first * kAttentionChunk, dims, run, stride,
                                                  out + first * out_stride, out_stride);
  });
}

/// Computes the factors of several queries at once.
inline void merge(SoftmaxPartial* states, float* sums, const SoftmaxPartial* partials,
                  const float* partial_sums, int64_t stride, int32_t n_q, int32_t dims) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  constexpr int32_t kTogether = static_cast<int32_t>(kLanes) / 2;
  for (int32_t first = 0; first < n_q; first += kTogether) {
    const int32_t end = std::min(n_q, first + kTogether);
    float factors[kLanes] = {};  // for the running sums, then for the partials
    float largest[kTogether];
    for (int32_t j = first; j < end; ++j) {
      const int32_t at = j - first;
      const SoftmaxPartial& state = states[j];
      largest[at] = state.max > partials[j].max ? state.max : partials[j].max;
      if (partials[j].max == kMinusInfinity) continue;
      factors[at] = state.max - largest[at];
      factors[kTogether + at] = partials[j].max - largest[at];
    }
    store(exp2_weight(load(factors)), factors);
    for (int32_t j = first; j < end; ++j) {
      if (partials[j].max == kMinusInfinity) continue;
      const int32_t at = j - first;
      const bool fresh = states[j].max == kMinusInfinity;
      const float old = fresh ? 0.0F : states[j].sum;
      states[j] = {largest[at],
                   std::fma(old, factors[at], partials[j].sum * factors[kTogether + at])};
      const Lanes16 old_factor = splat(factors[at]);
      const Lanes16 new_factor = splat(factors[kTogether + at]);
      float* to = sums + j * stride;
      const float* from = partial_sums + j * stride;
      const auto merged = [&](Lanes16 acc, Lanes16 partial)
                              HWY_ATTR { return fma(acc, old_factor, mul(partial, new_factor)); };
      int32_t i = 0;
      for (; i + kLanes <= dims; i += static_cast<int32_t>(kLanes)) {
        store(merged(fresh ? splat(0.0F) : load(to + i), load(from + i)), to + i);
      }
      if (i < dims) {
        const int64_t rest = dims - i;
        const Lanes16 acc = fresh ? splat(0.0F) : load_first(to + i, rest);
        store_first(merged(acc, load_first(from + i, rest)), to + i, rest);
      }
    }
  }
}

inline void finish(const SoftmaxPartial& state, const float* sums, float* out, int32_t dims) {
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
    .pack = pack,
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
static_assert(filled(kAttention.dots) == kKvFormats && filled(kAttention.weighted) == kKvFormats,
              "an element for each format");

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ATTENTION_INL_H_
