// SPDX-License-Identifier: Apache-2.0
// The reader of formats with a scale for each group of a head's elements, for the kernels of
// attention-inl.h, compiled once per target. A level is an element before scaling: a code, or a
// float made from it by kv_unpack-inl.h. For keys, sums over levels are scaled group by group. For
// values, the weight is multiplied by the scale first. Read first: attention_read-inl.h.

#if defined(GEN_ENGINE_CPU_ATTENTION_SCALED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ATTENTION_SCALED_INL_H_
#undef GEN_ENGINE_CPU_ATTENTION_SCALED_INL_H_
#else
#define GEN_ENGINE_CPU_ATTENTION_SCALED_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/cpu/attention/attention_read-inl.h"
#include "engine/cpu/attention/kv_unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

// Levels and scales of a tile. group(dims) elements share a scale; head(dims) bytes of scales come
// first; scales(tile, g) are those of sixteen entries. key(codes, d) is element d of sixteen keys,
// value(codes, lane, dims, c) elements [16 c, 16 c + 16) of one value; functions for pairs take the
// even index.

struct Fp8Codes {
  static constexpr int64_t kKeyBytes = kLanes;  // of an element of a tile of keys
  static HWY_INLINE int64_t group(int64_t dims) { return dims; }
  static HWY_INLINE int64_t head(int64_t) { return kLanes * int64_t{sizeof(float)}; }
  static HWY_INLINE Lanes16 scales(const std::byte* tile, int64_t) {
    return mul(load(reinterpret_cast<const float*>(tile)), splat(256.0F));
  }
  static HWY_INLINE Lanes16 key(const std::byte* codes, int64_t d) {
    return load(reinterpret_cast<const Fp8Level*>(codes) + d * kLanes);
  }
  static HWY_INLINE Lanes16 value(const std::byte* codes, int64_t lane, int64_t dims, int64_t c) {
    return load(reinterpret_cast<const Fp8Level*>(codes) + lane * dims + c * kLanes);
  }
  static HWY_INLINE void key_pair(const std::byte* codes, int64_t d, Lanes16* first,
                                  Lanes16* second) {
    load_pair(reinterpret_cast<const Fp8Level*>(codes) + d * kLanes, first, second);
  }
  static HWY_INLINE void value_pair(const std::byte* codes, int64_t lane, int64_t dims, int64_t c,
                                    Lanes16* first, Lanes16* second) {
    load_pair(reinterpret_cast<const Fp8Level*>(codes) + lane * dims + c * kLanes, first, second);
  }
  static HWY_INLINE Lanes16 value_first(const std::byte* codes, int64_t lane, int64_t dims,
                                        int64_t c, int64_t n) {
    return load_first(reinterpret_cast<const Fp8Level*>(codes) + lane * dims + c * kLanes, n);
  }
};

struct Q4Codes {
  static constexpr int64_t kKeyBytes = kLanes / 2;
  static HWY_INLINE int64_t group(int64_t) { return kQ4Group; }
  static HWY_INLINE int64_t head(int64_t dims) {
    return (dims + kQ4Group - 1) / kQ4Group * kLanes * int64_t{sizeof(uint16_t)};
  }
  static HWY_INLINE Lanes16 scales(const std::byte* tile, int64_t g) {
    return load(reinterpret_cast<const uint16_t*>(tile) + g * kLanes);
  }
  static HWY_INLINE Lanes16 key(const std::byte* codes, int64_t d) {
    const std::byte* pair = codes + d / 2 * kLanes;
    return d % 2 == 0 ? load(reinterpret_cast<const LowLevel*>(pair))
                      : load(reinterpret_cast<const HighLevel*>(pair));
  }
  static HWY_INLINE Lanes16 value(const std::byte* codes, int64_t lane, int64_t dims, int64_t c) {
    const int64_t groups = (dims + kQ4Group - 1) / kQ4Group;
    const std::byte* both = codes + (lane * groups + c / 2) * kLanes;
    return c % 2 == 0 ? load(reinterpret_cast<const LowLevel*>(both))
                      : load(reinterpret_cast<const HighLevel*>(both));
  }
  static HWY_INLINE void key_pair(const std::byte* codes, int64_t d, Lanes16* first,
                                  Lanes16* second) {
    load_levels(codes + d / 2 * kLanes, first, second);
  }
  static HWY_INLINE void value_pair(const std::byte* codes, int64_t lane, int64_t dims, int64_t c,
                                    Lanes16* first, Lanes16* second) {
    const int64_t groups = (dims + kQ4Group - 1) / kQ4Group;
    load_levels(codes + (lane * groups + c / 2) * kLanes, first, second);
  }
  static HWY_INLINE Lanes16 value_first(const std::byte* codes, int64_t lane, int64_t dims,
                                        int64_t c, int64_t) {
    return value(codes, lane, dims, c);  // groups are padded
  }
};

/// A tile unpacked by unpack_fp8 or unpack_q4: scales, then levels as floats.
template <int64_t kGroup>
struct UnpackedLevels {
  static constexpr int64_t kKeyBytes = 0;  // already in the L1 cache
  static HWY_INLINE int64_t group(int64_t dims) { return kGroup == 0 ? dims : kGroup; }
  static HWY_INLINE int64_t head(int64_t dims) {
    return (dims + group(dims) - 1) / group(dims) * kLanes * int64_t{sizeof(float)};
  }
  static HWY_INLINE Lanes16 scales(const std::byte* tile, int64_t g) {
    return load(reinterpret_cast<const float*>(tile) + g * kLanes);
  }
  static HWY_INLINE Lanes16 key(const std::byte* levels, int64_t d) {
    return load(reinterpret_cast<const float*>(levels) + d * kLanes);
  }
  static HWY_INLINE Lanes16 value(const std::byte* levels, int64_t lane, int64_t dims, int64_t c) {
    return load(reinterpret_cast<const float*>(levels) + lane * dims + c * kLanes);
  }
  static HWY_INLINE void key_pair(const std::byte* codes, int64_t d, Lanes16* first,
                                  Lanes16* second) {
    *first = key(codes, d);
    *second = key(codes, d + 1);
  }
  static HWY_INLINE void value_pair(const std::byte* codes, int64_t lane, int64_t dims, int64_t c,
                                    Lanes16* first, Lanes16* second) {
    *first = value(codes, lane, dims, c);
    *second = value(codes, lane, dims, c + 1);
  }
  static HWY_INLINE Lanes16 value_first(const std::byte* levels, int64_t lane, int64_t dims,
                                        int64_t c, int64_t n) {
    return load_first(reinterpret_cast<const float*>(levels) + lane * dims + c * kLanes, n);
  }
};

template <typename Levels>
struct ScaledReader {
  template <size_t kQ>
  static constexpr size_t kTilesAtOnce = kTilesOf<kQ>;

  /// Scores of kT tiles of keys for kQ queries: score_stride floats from one query's to the next's.
  template <size_t kQ, size_t kT>
  static HWY_INLINE void dot_tiles(const float* q, int64_t dims, const std::byte* tile,
                                   const std::byte*, size_t stride, Ahead next, float* scores,
                                   size_t score_stride) {
    constexpr auto kStep = static_cast<size_t>(kLanes);
    const int64_t group = Levels::group(dims);
    if constexpr (Levels::kKeyBytes != 0) {
      for (int64_t at = 0; at < static_cast<int64_t>(kT) * Levels::head(dims);
           at += int64_t{kFetchBytes}) {
        fetch_lines(&next);
      }
    }
    for (int64_t g = 0, d = 0; d < dims; ++g) {
      Lanes16 acc[kQ][kT];
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) {
        GEN_UNROLL
        for (size_t t = 0; t < kT; ++t) acc[j][t] = splat(0.0F);
      }
      const int64_t end = std::min(dims, d + group);
      const auto element = [&](const Lanes16* key, int64_t at) HWY_ATTR {
        GEN_UNROLL
        for (size_t j = 0; j < kQ; ++j) {
          const Lanes16 query = splat(q[at * int64_t{kQ} + static_cast<int64_t>(j)]);
          GEN_UNROLL
          for (size_t t = 0; t < kT; ++t) acc[j][t] = fma(query, key[t], acc[j][t]);
        }
      };
      Lanes16 first[kT];
      Lanes16 second[kT];
      for (; d + 1 < end; d += 2) {
        if constexpr (Levels::kKeyBytes != 0) {
          fetch_share<2 * kT* static_cast<size_t>(Levels::kKeyBytes)>(&next, d / 2);
        }
        GEN_UNROLL
        for (size_t t = 0; t < kT; ++t) {
          Levels::key_pair(tile + t * stride + Levels::head(dims), d, &first[t], &second[t]);
        }
        element(first, d);
        element(second, d + 1);
      }
      if (d < end) {
        GEN_UNROLL
        for (size_t t = 0; t < kT; ++t) {
          first[t] = Levels::key(tile + t * stride + Levels::head(dims), d);
        }
        element(first, d++);
      }
      GEN_UNROLL
      for (size_t t = 0; t < kT; ++t) {
        const Lanes16 scale = Levels::scales(tile + t * stride, g);
        GEN_UNROLL
        for (size_t j = 0; j < kQ; ++j) {
          float* to = scores + j * score_stride + t * kStep;
          store(g == 0 ? mul(acc[j][t], scale) : fma(acc[j][t], scale, load(to)), to);
        }
      }
    }
  }

  /// out[j][columns] += weight * value over the run, kColumns * 16 columns from `column` on.
  template <size_t kQ, size_t kColumns>
  static HWY_INLINE void weighted_tile(const float* p, const KvRun& run, size_t stride,
                                       int64_t dims, float* out, int64_t out_stride,
                                       int64_t column) {
    constexpr auto kStep = static_cast<size_t>(kLanes);
    constexpr size_t kGroups = (kColumns + 1) / 2;
    const int64_t first_column = column / kLanes;
    const int64_t group = Levels::group(dims);
    Lanes16 acc[kQ][kColumns];
    load_sums(out + column, out_stride, acc);
    // This pass prefetches its share of the next values in address order.
    const auto share =
        static_cast<int64_t>(stride) * static_cast<int64_t>(kColumns) * kLanes / dims;
    Ahead next = ahead_of(run, stride, column / kLanes * run.count * Levels::kKeyBytes);
    int64_t asked = 0;
    int64_t due = 0;
    each_tile<kQ>(p, run, stride,
                  [&](const std::byte* tile, int32_t lane, int32_t count, const float* weights,
                      size_t apart) HWY_ATTR {
                    if constexpr (Levels::kKeyBytes != 0) {
                      for (due += share; asked < due; asked += int64_t{kFetchBytes}) {
                        fetch_lines(&next);
                      }
                    }
                    float scaled[kGroups][kQ][kStep];
                    GEN_UNROLL
                    for (size_t g = 0; g < kGroups; ++g) {
                      const int64_t of = (column + static_cast<int64_t>(g) * 2 * kLanes) / group;
                      const Lanes16 scale = Levels::scales(tile, of);
                      GEN_UNROLL
                      for (size_t j = 0; j < kQ; ++j)
                        store(mul(load(weights + j * apart), scale), scaled[g][j]);
                    }
                    const std::byte* codes = tile + Levels::head(dims);
                    for (int32_t i = lane; i < lane + count; ++i) {
                      GEN_UNROLL
                      for (size_t c = 0; c < kColumns; c += 2) {
                        const int64_t from = first_column + static_cast<int64_t>(c);
                        Lanes16 v[2];
                        if constexpr (kColumns > 1) {
                          Levels::value_pair(codes, i, dims, from, &v[0], &v[1]);
                        } else {
                          v[0] = Levels::value(codes, i, dims, from);
                        }
                        GEN_UNROLL
                        for (size_t j = 0; j < kQ; ++j) {
                          const Lanes16 w = splat(scaled[c / 2][j][i]);
                          acc[j][c] = fma(w, v[0], acc[j][c]);
                          if constexpr (kColumns > 1) acc[j][c + 1] = fma(w, v[1], acc[j][c + 1]);
                        }
                      }
                    }
                  });
    store_sums(acc, out + column, out_stride);
  }

  /// The last dims % 16 columns of one query.
  static HWY_INLINE void weighted_rest(const float* p, int64_t count, const KvRun& run,
                                       size_t stride, int64_t dims, float* out, int64_t column) {
    Lanes16 acc = load_first(out + column, count);
    each_tile<1>(p, run, stride,
                 [&](const std::byte* tile, int32_t lane, int32_t entries, const float* weights,
                     size_t) HWY_ATTR {
                   float scaled[kLanes];
                   const Lanes16 scale = Levels::scales(tile, column / Levels::group(dims));
                   store(mul(load(weights), scale), scaled);
                   for (int32_t i = lane; i < lane + entries; ++i) {
                     const Lanes16 v = Levels::value_first(tile + Levels::head(dims), i, dims,
                                                           column / kLanes, count);
                     acc = fma(splat(scaled[i]), v, acc);
                   }
                 });
    store_first(acc, out + column, count);
  }

 private:
  /// Calls step(tile, lane, count, weights, apart) for the tiles of a run: weights[j * apart + i]
  /// is that of entry i of the tile for query j, anything outside of [lane, lane + count).
  template <size_t kQ, typename Step>
  static HWY_INLINE void each_tile(const float* p, const KvRun& run, size_t stride, Step step) {
    const std::byte* tile = run.tile;
    int32_t lane = run.lane;
    for (int32_t i = 0; i < run.count; tile += stride, lane = 0) {
      const int32_t here = std::min(run.count - i, kKvTile - lane);
      const float* weights = p + run.slot + i;
      if (here == kKvTile) {
        step(tile, lane, here, weights, size_t{kAttentionChunk});
      } else {
        float padded[kQ * kLanes] = {};
        for (size_t j = 0; j < kQ; ++j) {
          std::copy_n(weights + j * size_t{kAttentionChunk}, here, padded + j * kLanes + lane);
        }
        step(tile, lane, here, padded, size_t{kLanes});
      }
      i += here;
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ATTENTION_SCALED_INL_H_
