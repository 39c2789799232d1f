// SPDX-License-Identifier: Apache-2.0
// The readers of tiles for the kernels of attention-inl.h, compiled once per target. A reader
// multiplies queries with tiles of keys and sums weighted values. The number of queries, tiles or
// columns that it processes at once does not change the result.
//   PlainReader   float32 and binary16, here
//   ScaledReader  levels with scales, attention_scaled-inl.h
//   Q3Reader      codes that select centroids, attention_q3-inl.h
// Elements and entries are summed in ascending order; nothing is summed across lanes.

#if defined(GEN_ENGINE_CPU_ATTENTION_READ_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ATTENTION_READ_INL_H_
#undef GEN_ENGINE_CPU_ATTENTION_READ_INL_H_
#else
#define GEN_ENGINE_CPU_ATTENTION_READ_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/cpu/attention/attention.h"
#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

// Register tiling: sixteen lanes take 1 of 32 registers with AVX-512, 2 of 16 with AVX2, 4 of 32
// with NEON. With few queries (multi-head decode) more keys or columns are processed at once, so
// that enough independent sums hide the latency of each.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kTileQueries = 8;
template <size_t kQ>
constexpr size_t kTilesOf = kQ == 8 ? 2 : 4;
template <size_t kQ>
constexpr size_t kTileColumns = kQ == 8   ? 2
                                : kQ == 4 ? 4
                                          : 8;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr size_t kTileQueries = 2;
template <size_t kQ>
constexpr size_t kTilesOf = kQ == 1 ? 4 : 2;
template <size_t kQ>
constexpr size_t kTileColumns = kQ == 1 ? 4 : 2;
#else
constexpr size_t kTileQueries = 1;
template <size_t kQ>
constexpr size_t kTilesOf = 1;
template <size_t kQ>
constexpr size_t kTileColumns = 1;
#endif

/// Prefetches go to the L2 cache: they do not compete for the few fill buffers of the L1 cache.
constexpr int kFetchLevel = 2;
/// A prefetch is split into this many stretches, one line of each in turn. The hardware prefetcher
/// stops at the end of a page and needs several misses to start again.
constexpr int64_t kStretches = 4;
constexpr size_t kFetchBytes = 64 * kStretches;

/// The next lines to prefetch.
struct Ahead {
  const std::byte* at;  // in the first stretch
  int64_t apart;        // bytes from one stretch to the next
};

/// The prefetch position after `done` bytes of the run.
HWY_INLINE Ahead ahead_of(const KvRun& run, size_t stride, int64_t done) {
  const int64_t all = (run.count + kKvTile - 1) / kKvTile * static_cast<int64_t>(stride);
  return {run.tile + run.ahead + done / kStretches, all / kStretches};
}

/// Prefetches one line of each stretch.
HWY_INLINE void fetch_lines(Ahead* next) {
  GEN_UNROLL
  for (int64_t s = 0; s < kStretches; ++s) {
    __builtin_prefetch(next->at + s * next->apart, 0, kFetchLevel);
  }
  next->at += 64;
}

/// Prefetches the share of step i, counting from 0, where each step processes kBytes.
template <size_t kBytes>
HWY_INLINE void fetch_share(Ahead* next, int64_t i) {
  if constexpr (kBytes >= kFetchBytes) {
    for (size_t n = 0; n < kBytes / kFetchBytes; ++n) fetch_lines(next);
  } else {
    if (i % static_cast<int64_t>(kFetchBytes / kBytes) == 0) fetch_lines(next);
  }
}

/// The number of steps of this many bytes per prefetch, so that each prefetch is of whole lines.
constexpr size_t block_of(size_t bytes) {
  size_t steps = 4;
  while (steps * bytes % kFetchBytes != 0) steps *= 2;
  return steps;
}

/// Running sums of kQ queries, kColumns times sixteen columns; `out` is the first query's, at the
/// first column.
template <size_t kQ, size_t kColumns>
HWY_INLINE void load_sums(const float* out, int64_t stride, Lanes16 (&acc)[kQ][kColumns]) {
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    const float* row = out + static_cast<int64_t>(j) * stride;
    GEN_UNROLL
    for (size_t c = 0; c < kColumns; ++c) acc[j][c] = load(row + c * size_t{kLanes});
  }
}
template <size_t kQ, size_t kColumns>
HWY_INLINE void store_sums(const Lanes16 (&acc)[kQ][kColumns], float* out, int64_t stride) {
  GEN_UNROLL
  for (size_t j = 0; j < kQ; ++j) {
    float* row = out + static_cast<int64_t>(j) * stride;
    GEN_UNROLL
    for (size_t c = 0; c < kColumns; ++c) store(acc[j][c], row + c * size_t{kLanes});
  }
}

template <typename E>
struct PlainReader {
  // Each loaded query element is used for three tiles, which saves loads.
  template <size_t kQ>
  static constexpr size_t kTilesAtOnce = kQ == 8 ? 3 : kTilesOf<kQ>;

  /// Scores of kT tiles of keys for kQ queries: score_stride floats from one query's to the next's.
  template <size_t kQ, size_t kT>
  static HWY_INLINE void dot_tiles(const float* q, int64_t dims, const std::byte* tile,
                                   const std::byte*, size_t stride, Ahead next, float* scores,
                                   size_t score_stride) {
    constexpr auto kStep = static_cast<size_t>(kLanes);
    Lanes16 acc[kQ][kT];
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      GEN_UNROLL
      for (size_t t = 0; t < kT; ++t) acc[j][t] = splat(0.0F);
    }
    const std::byte* keys = tile;
    const auto element = [&](int64_t d) HWY_ATTR {
      Lanes16 key[kT];
      GEN_UNROLL
      for (size_t t = 0; t < kT; ++t) {
        key[t] = load(reinterpret_cast<const E*>(keys + t * stride) + d * kLanes);
      }
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) {
        const Lanes16 query = splat(q[d * int64_t{kQ} + static_cast<int64_t>(j)]);
        GEN_UNROLL
        for (size_t t = 0; t < kT; ++t) acc[j][t] = fma(query, key[t], acc[j][t]);
      }
    };
    constexpr auto kBlock = static_cast<int64_t>(block_of(kT * kStep * sizeof(E)));
    int64_t d = 0;
    for (; d + kBlock <= dims; d += kBlock) {
      fetch_share<kT * kStep * sizeof(E) * static_cast<size_t>(kBlock)>(&next, 0);
      GEN_UNROLL
      for (int64_t i = 0; i < kBlock; ++i) element(i);
      keys += kBlock * kLanes * int64_t{sizeof(E)};
      q += kBlock * int64_t{kQ};
    }
    for (int64_t i = 0; d + i < dims; ++i) element(i);
    GEN_UNROLL
    for (size_t j = 0; j < kQ; ++j) {
      GEN_UNROLL
      for (size_t t = 0; t < kT; ++t) store(acc[j][t], scores + j * score_stride + t * kStep);
    }
  }

  template <size_t kQ, size_t kColumns>
  static HWY_INLINE void weighted_tile(const float* p, const KvRun& run, size_t stride,
                                       int64_t dims, float* out, int64_t out_stride,
                                       int64_t column) {
    constexpr auto kStep = static_cast<size_t>(kLanes);
    Lanes16 acc[kQ][kColumns];
    load_sums(out + column, out_stride, acc);
    const float* weights = p + run.slot;
    // Each pass over the values prefetches its share of the next ones in address order.
    Ahead next = ahead_of(run, stride, column * run.count * int64_t{sizeof(E)});
    const size_t row = static_cast<size_t>(dims) * sizeof(E);
    const auto one = [&](const std::byte* at, const float* weight) HWY_ATTR {
      const E* value = reinterpret_cast<const E*>(at) + column;
      Lanes16 v[kColumns];
      GEN_UNROLL
      for (size_t c = 0; c < kColumns; ++c) v[c] = load(value + c * kStep);
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) {
        const Lanes16 w = splat(weight[j * size_t{kAttentionChunk}]);
        GEN_UNROLL
        for (size_t c = 0; c < kColumns; ++c) acc[j][c] = fma(w, v[c], acc[j][c]);
      }
    };
    constexpr size_t kBlock = block_of(kColumns * kStep * sizeof(E));
    each_tile(run, stride, dims, [&](const std::byte* value, size_t count) HWY_ATTR {
      size_t i = 0;
      for (; i + kBlock <= count; i += kBlock) {
        fetch_share<kColumns * kStep * sizeof(E) * kBlock>(&next, 0);
        GEN_UNROLL
        for (size_t n = 0; n < kBlock; ++n) one(value + n * row, weights + n);
        value += kBlock * row;
        weights += kBlock;
      }
      for (; i < count; ++i, value += row) one(value, weights++);
    });
    store_sums(acc, out + column, out_stride);
  }

  /// The last dims % 16 columns of one query.
  static HWY_INLINE void weighted_rest(const float* p, int64_t count, const KvRun& run,
                                       size_t stride, int64_t dims, float* out, int64_t column) {
    Lanes16 acc = load_first(out + column, count);
    const size_t row = static_cast<size_t>(dims) * sizeof(E);
    const float* weight = p + run.slot;
    each_tile(run, stride, dims, [&](const std::byte* at, size_t n) HWY_ATTR {
      for (size_t i = 0; i < n; ++i, at += row) {
        const E* value = reinterpret_cast<const E*>(at) + column;
        acc = fma(splat(*weight++), load_first(value, count), acc);
      }
    });
    store_first(acc, out + column, count);
  }

 private:
  /// Calls step(value, count) for the contiguous pieces of a run in ascending order.
  template <typename Step>
  static HWY_INLINE void each_tile(const KvRun& run, size_t stride, int64_t dims, Step step) {
    const size_t row = static_cast<size_t>(dims) * sizeof(E);
    const std::byte* tile = run.tile;
    int32_t lane = run.lane;
    // Adjacent tiles form one piece.
    const int32_t most = stride == kKvTile * row ? run.count + lane : kKvTile;
    for (int32_t left = run.count; left > 0; tile += stride, lane = 0) {
      const int32_t here = std::min(left, most - lane);
      step(tile + static_cast<size_t>(lane) * row, static_cast<size_t>(here));
      left -= here;
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ATTENTION_READ_INL_H_
