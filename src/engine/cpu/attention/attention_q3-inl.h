// SPDX-License-Identifier: Apache-2.0
// The reader of q3 tiles for the kernels of attention-inl.h, compiled once per target. The layout
// is described in engine/kv/q3.cpp. Read first: attention_read-inl.h.

#if defined(GEN_ENGINE_CPU_ATTENTION_Q3_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ATTENTION_Q3_INL_H_
#undef GEN_ENGINE_CPU_ATTENTION_Q3_INL_H_
#else
#define GEN_ENGINE_CPU_ATTENTION_Q3_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engine/cpu/attention/attention_read-inl.h"
#include "engine/cpu/attention/kv_unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// q3: a code selects one of its entry's eight centroids. For keys a lane is an entry with
/// centroids of its own, so the bits select between registers. Elements of a value are looked up in
/// one register.
struct Q3Reader {
  template <size_t kQ>
  static constexpr size_t kTilesAtOnce = 1;

  template <size_t kQ, size_t kT>
  static HWY_INLINE void dot_tiles(const float* q, int64_t dims, const std::byte* tile,
                                   const std::byte* shared, size_t, Ahead next, float* scores,
                                   size_t score_stride) {
    static_assert(kT == 1);
    for (int64_t lane = 0; lane < kLanes; lane += kNativeLanes) {
      Native acc[kQ];
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) acc[j] = splat_native(0.0F);
      for (int64_t first = 0; first < dims; first += kQ3Group) {
        const auto* group =
            reinterpret_cast<const uint16_t*>(shared + first / kQ3Group * kQ3GroupBytes);
        Native centroids[kQ3Centroids];
        GEN_UNROLL
        for (int64_t i = 0; i < kQ3Centroids; ++i) {
          centroids[i] = load_native(group + i * kLanes + lane);
        }
        const int64_t end = std::min<int64_t>(dims, first + kQ3Group);
        for (int64_t d = first; d < end; d += 8) {
          if (lane == 0) fetch_share<kOctetBytes>(&next, d / 8);
          const uint8_t* from = bytes_at(tile) + d / 8 * 3 * kLanes + lane;
          const Octet codes = load_octet(from);
          const auto n = static_cast<size_t>(end - d);
          if (n >= 8) {
            add_elements<kQ>(q, d, codes, centroids, 8, acc, std::make_index_sequence<8>());
          } else {
            add_elements<kQ>(q, d, codes, centroids, n, acc, std::make_index_sequence<8>());
          }
        }
      }
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) store(acc[j], scores + j * score_stride + lane);
    }
  }

  template <size_t kQ, size_t kColumns>
  static HWY_INLINE void weighted_tile(const float* p, const KvRun& run, size_t stride,
                                       int64_t dims, float* out, int64_t out_stride,
                                       int64_t column) {
    Lanes16 acc[kQ][kColumns];
    load_sums(out + column, out_stride, acc);
    const float* weights = p + run.slot;
    each_entry(run, stride, dims, column, static_cast<int64_t>(kColumns),
               [&](Q3Table table, const std::byte* codes, int32_t i) HWY_ATTR {
                 Lanes16 v[kColumns];
                 GEN_UNROLL
                 for (size_t c = 0; c < kColumns; ++c) v[c] = pick_elements(table, codes + 6 * c);
                 GEN_UNROLL
                 for (size_t j = 0; j < kQ; ++j) {
                   const Lanes16 w =
                       splat(weights[j * size_t{kAttentionChunk} + static_cast<size_t>(i)]);
                   GEN_UNROLL
                   for (size_t c = 0; c < kColumns; ++c) acc[j][c] = fma(w, v[c], acc[j][c]);
                 }
               });
    store_sums(acc, out + column, out_stride);
  }

  /// The last dims % 16 columns of one query.
  static HWY_INLINE void weighted_rest(const float* p, int64_t count, const KvRun& run,
                                       size_t stride, int64_t dims, float* out, int64_t column) {
    const int64_t bytes = (count + 7) / 8 * 3;
    Lanes16 acc = load_first(out + column, count);
    each_entry(run, stride, dims, column, 1,
               [&](Q3Table table, const std::byte* codes, int32_t i) HWY_ATTR {
                 std::byte padded[6] = {};
                 std::memcpy(padded, codes, static_cast<size_t>(bytes));
                 acc = fma(splat(p[run.slot + i]), pick_elements(table, padded), acc);
               });
    store_first(acc, out + column, count);
  }

 private:
  static constexpr size_t kOctetBytes = 64;  // 48 of codes, and a share of the centroids

  template <size_t kQ, size_t... kI>
  static HWY_INLINE void add_elements(const float* q, int64_t d, const Octet& codes,
                                      const Native* centroids, size_t n, Native* acc,
                                      std::index_sequence<kI...>) {
    const auto add_one = [&](size_t i, Native key) HWY_ATTR {
      const float* at = q + (static_cast<size_t>(d) + i) * kQ;
      GEN_UNROLL
      for (size_t j = 0; j < kQ; ++j) {
        acc[j] = fma(splat_native(at[j]), key, acc[j]);
      }
    };
    ((kI < n ? add_one(kI, pick_centroid<static_cast<int>(kI)>(codes, centroids)) : void()), ...);
  }

  /// Calls step(table, codes, i) for the entries of a run in ascending order, i counting from 0,
  /// with the table and the codes of the columns.
  template <typename Step>
  static HWY_INLINE void each_entry(const KvRun& run, size_t stride, int64_t dims, int64_t column,
                                    int64_t columns, Step step) {
    const int64_t row = (dims + 7) / 8 * 3;
    const int64_t share = static_cast<int64_t>(stride) * columns * kLanes / dims;
    Ahead next = ahead_of(run, stride, column * 3 / 8 * run.count);
    int64_t asked = 0;
    int64_t due = 0;
    const std::byte* tile = run.tile;
    const std::byte* shared = run.shared + column / kQ3Group * kQ3GroupBytes;
    int32_t lane = run.lane;
    for (int32_t i = 0; i < run.count; tile += stride, shared += run.shared_stride, lane = 0) {
      for (due += share; asked < due; asked += int64_t{kFetchBytes}) fetch_lines(&next);
      if (column % kQ3Group == 0) fetch_shared(shared, run);
      float tables[kUnpackTile * kQ3Centroids];
      turn_centroids(shared, tables);
      const int32_t here = std::min(run.count - i, kKvTile - lane);
      const std::byte* codes = tile + lane * row + column / 8 * 3;
      for (const int32_t end = i + here; i < end; ++i, ++lane, codes += row) {
        step(q3_table(tables + lane * kQ3Centroids), codes, i);
      }
    }
  }

  static HWY_INLINE void fetch_shared(const std::byte* shared, const KvRun& run) {
    for (int64_t at = 0; at < kQ3GroupBytes; at += 64) {
      __builtin_prefetch(shared + run.shared_ahead + at, 0, kFetchLevel);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ATTENTION_Q3_INL_H_
