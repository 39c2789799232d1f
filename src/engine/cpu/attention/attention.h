// SPDX-License-Identifier: Apache-2.0
// Kernels of attention over one chunk of a sequence. attention.cpp chooses the queries and entries;
// the bodies are in attention-inl.h. To add a cache format: a value of KvFormat, a reader (see
// attention_read-inl.h) or an unpacking function, and an entry in the arrays below.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "engine/kv_view.h"

namespace gen::engine::cpu {

/// Positions per chunk. With 256 the keys or values of one head are 32 KiB in binary16 at head size
/// 64, so they stay in the L1 cache for all queries of a block, and merging costs 4 % (8 % with
/// 128).
constexpr int32_t kAttentionChunk = kKvChunk;

/// `count` entries of a head for the chunk's slots from `slot` on. They begin at lane `lane` of
/// `tile` and continue in the tiles after it, `stride` bytes apart.
struct KvRun {
  const std::byte* tile;
  const std::byte* shared;  // shared data of the first tile, in formats that have it
  int32_t lane;
  int32_t slot;
  int32_t count;
  /// Distance in bytes to what this thread reads next, to be prefetched; 0 for none. Computing a
  /// chunk takes about as long as reading the next one.
  ptrdiff_t ahead = 0;
  size_t shared_stride = 0;    // bytes from the shared data of one tile to the next's
  ptrdiff_t shared_ahead = 0;  // as `ahead`
};

/// Slots [begin, end) of a chunk.
struct SlotRange {
  int32_t begin;
  int32_t end;
};

/// How raw dot products become scores.
struct ScoreRule {
  float scale;
  float soft_cap;        // 0 is off
  const float* weights;  // [kAttentionChunk] added last, or null
};

inline constexpr float kLog2E = 1.44269504F;
/// The state of an online softmax in base 2: scores are log2(e) times those of the rule.
struct SoftmaxPartial {
  float max;  // -infinity if every score is
  float sum;  // of 2^(score - max)
};

/// Pointers need no alignment beyond their element's. Rows of scores have kAttentionChunk floats
/// and are contiguous. Dot products read whole tiles of keys; lanes outside the run are undefined.
struct AttentionKernels {
  /// The best number of queries for one pass over the values.
  int32_t tile_queries;
  /// Up to this many queries, formats with codes are read in place. More queries share tiles that
  /// `unpack` has expanded into the L1 cache. The result is the same.
  int32_t direct_queries;
  /// Packs queries for `dots`, n_q * dims floats.
  void (*pack)(const float* const* q, int32_t n_q, int32_t dims, float* packed);
  /// scores[j][run.slot + i] = q[j] . key i, for n_q packed queries; indexed by KvFormat, null for
  /// formats that are always unpacked.
  void (*dots[kKvFormats])(const float* packed, int32_t n_q, int32_t dims, const KvRun& run,
                           size_t stride, float* scores);
  /// out[j][:] += sum_i p[j][run.slot + i] * value i, i ascending, for n_q rows of scores; rows of
  /// `out` are out_stride floats apart.
  void (*weighted[kKvFormats])(const float* p, int32_t n_q, int32_t dims, const KvRun& run,
                               size_t stride, float* out, int64_t out_stride);
  /// By format and KvOrder: expands a tile of one head to unpacked_tile_floats() floats, which the
  /// next two functions read; null for formats without codes.
  void (*unpack[kKvFormats][2])(const std::byte* tile, const std::byte* shared, int32_t dims,
                                float* out);
  void (*unpacked_dots[kKvFormats])(const float* packed, int32_t n_q, int32_t dims,
                                    const KvRun& run, size_t stride, float* scores);
  void (*unpacked_weighted[kKvFormats])(const float* p, int32_t n_q, int32_t dims, const KvRun& run,
                                        size_t stride, float* out, int64_t out_stride);
  /// Replaces scores[j][seen[j]] by 2^(score - max), for n_q rows; other slots of the same groups
  /// of 16 become 0.
  void (*softmax)(float* scores, const SlotRange* seen, int32_t n_q, const ScoreRule& rule,
                  SoftmaxPartial* partials);
  /// Merges the partials of the next chunk into the running softmax of n_q queries; rows of sums
  /// are `stride` floats apart. A state begins with max = -infinity and undefined sums.
  void (*merge)(SoftmaxPartial* states, float* sums, const SoftmaxPartial* partials,
                const float* partial_sums, int64_t stride, int32_t n_q, int32_t dims);
  /// out = sums / state.sum, zeros if nothing was visible.
  void (*finish)(const SoftmaxPartial& state, const float* sums, float* out, int32_t dims);
};

/// Enough for every format: values, and a scale for each group of 32 or more.
constexpr int64_t unpacked_tile_floats(int64_t dims) { return kKvTile * (dims + (dims + 31) / 32); }

const AttentionKernels* attention_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
