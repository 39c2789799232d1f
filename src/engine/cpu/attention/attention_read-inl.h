// SPDX-License-Identifier: Apache-2.0
// How the kernels of attention-inl.h read a tile of sixteen keys or values, compiled once per
// target. A reader multiplies queries with tiles of keys and adds weighted values up; how many
// queries, tiles or columns it takes at once never shows in a result.
//   PlainReader   float32 and binary16, here
//   ScaledReader  levels with scales, attention_scaled-inl.h
//   Q3Reader      codes that pick centroids, attention_q3-inl.h
// Elements and entries are added up ascending, nothing is summed across lanes.

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

// Tiles by register count: sixteen lanes are 1 of 32 registers with AVX-512, 2 of 16 with AVX2,
// 4 of 32 with NEON. Few queries (multi-head decode) take more keys or columns at once instead, so
// that enough sums are under way to hide the latency of one.
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

/// What is needed soon goes to the second-level cache: requests from there do not wait for the few
/// lines that the first level can have under way.
constexpr int kFetchLevel = 2;
/// It is asked for in so many stretches side by side, a line of each in turn: the processor's own
/// prefetching follows a place until its page ends, and starts again slowly.
constexpr int64_t kStretches = 4;
constexpr size_t kFetchBytes = 64 * kStretches;

/// Where the next lines lie.
struct Ahead {
  const std::byte* at;  // in the first stretch
  int64_t apart;        // bytes from one stretch to the next
};

/// Where to go on after `done` bytes of the run have been worked on.
HWY_INLINE Ahead ahead_of(const KvRun& run, size_t stride, int64_t done) {
  const int64_t all = (run.count + kKvTile - 1) / kKvTile * static_cast<int64_t>(stride);
  return {run.tile + run.ahead + done / kStretches, all / kStretches};
}

/// A line of each stretch.
HWY_INLINE void fetch_lines(Ahead* next) {
  GEN_UNROLL
  for (int64_t s = 0; s < kStretches; ++s) {
    __builtin_prefetch(next->at + s * next->apart, 0, kFetchLevel);
  }
  next->at += 64;
}

/// The share of step i, counting from 0, if every step works on kBytes.
template <size_t kBytes>
HWY_INLINE void fetch_share(Ahead* next, int64_t i) {
  if constexpr (kBytes >= kFetchBytes) {
    for (size_t n = 0; n < kBytes / kFetchBytes; ++n) fetch_lines(next);
  } else {
    if (i % static_cast<int64_t>(kFetchBytes / kBytes) == 0) fetch_lines(next);
  }
}

/// How many steps of so many bytes are taken at once: a few, for which whole requests are made.
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
  // An element of a query serves three tiles: fewer loads for each multiplication.
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
    // Each pass over the values asks for its share of the next ones, in the order of addresses.
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
  /// Calls step(value, count) for the pieces of a run in ascending order: `count` values from there
  /// on, one after another.
  template <typename Step>
  static HWY_INLINE void each_tile(const KvRun& run, size_t stride, int64_t dims, Step step) {
    const size_t row = static_cast<size_t>(dims) * sizeof(E);
    const std::byte* tile = run.tile;
    int32_t lane = run.lane;
    // Tiles that touch are one piece.
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
