// SPDX-License-Identifier: Apache-2.0
// Kernels of attention over one chunk of a sequence. attention.cpp decides which queries and which
// entries meet; the bodies are in attention-inl.h. To add a cache format: a number in KvFormat, a
// reader as attention_read-inl.h says or an unpacking function, and one more pointer in the arrays
// below.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "engine/kv_view.h"

namespace gen::engine::cpu {

/// Positions of a chunk. 256 suits here, since one head's keys or values of a chunk are 32 KiB in
/// binary16 at head size 64, so they stay in the first-level cache while the queries of a block
/// pass, and merging costs 4 % (8 % with 128).
constexpr int32_t kAttentionChunk = kKvChunk;

/// `count` entries of a head that fill the chunk's slots from `slot` on: those from `lane` on of
/// one tile, and of the tiles after it, `stride` bytes apart.
struct KvRun {
  const std::byte* tile;
  const std::byte* shared;  // of the first tile, for formats whose heads share something
  int32_t lane;
  int32_t slot;
  int32_t count;
  /// Bytes from here to what this thread reads next, or 0: asked for on the way, since what a chunk
  /// costs to compute is about what the next one costs to read.
  ptrdiff_t ahead = 0;
  size_t shared_stride = 0;    // bytes from what heads share of a tile to that of the next
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

/// Scores in powers of two: log2(e) times those of the rule.
struct SoftmaxPartial {
  float max;  // -infinity if every score was
  float sum;  // of 2^(score - max)
};

/// Pointers need no alignment beyond their element. Score rows have kAttentionChunk floats and
/// follow one another. Dot products read whole tiles of keys; what lies in lanes beside the run may
/// be anything.
struct AttentionKernels {
  /// Queries that share one pass over the values best.
  int32_t tile_queries;
  /// Up to as many queries a format with codes is read in place; more share what `unpack` makes of
  /// a few tiles, which stay in the first-level cache. The result is the same.
  int32_t direct_queries;
  /// Lays queries side by side in the way that `dots` wants, n_q * dims floats.
  void (*pack)(const float* const* q, int32_t n_q, int32_t dims, float* packed);
  /// scores[j][run.slot + i] = q[j] . key i, for n_q packed queries; indexed by KvFormat, null for
  /// formats that are always unpacked.
  void (*dots[kKvFormats])(const float* packed, int32_t n_q, int32_t dims, const KvRun& run,
                           size_t stride, float* scores);
  /// out[j][:] += sum_i p[j][run.slot + i] * value i, i ascending, for n_q rows of scores; rows of
  /// `out` are out_stride floats apart.
  void (*weighted[kKvFormats])(const float* p, int32_t n_q, int32_t dims, const KvRun& run,
                               size_t stride, float* out, int64_t out_stride);
  /// By format and KvOrder: a tile of one head as unpacked_tile_floats() floats, which the two
  /// below read; null for formats without codes.
  void (*unpack[kKvFormats][2])(const std::byte* tile, const std::byte* shared, int32_t dims,
                                float* out);
  void (*unpacked_dots[kKvFormats])(const float* packed, int32_t n_q, int32_t dims,
                                    const KvRun& run, size_t stride, float* scores);
  void (*unpacked_weighted[kKvFormats])(const float* p, int32_t n_q, int32_t dims, const KvRun& run,
                                        size_t stride, float* out, int64_t out_stride);
  /// Turns scores[j][seen[j]] into 2^(score - max), for n_q rows; slots beside them within their
  /// groups of 16 become 0.
  void (*softmax)(float* scores, const SlotRange* seen, int32_t n_q, const ScoreRule& rule,
                  SoftmaxPartial* partials);
  /// Adds a later chunk's partials to the running softmax of n_q queries; rows of sums are `stride`
  /// floats apart. A state's max starts at -infinity, with sums of anything.
  void (*merge)(SoftmaxPartial* states, float* sums, const SoftmaxPartial* partials,
                const float* partial_sums, int64_t stride, int32_t n_q, int32_t dims);
  /// out = sums / state.sum, zeros if nothing was visible.
  void (*finish)(const SoftmaxPartial& state, const float* sums, float* out, int32_t dims);
};

/// Enough for every format: levels, and a scale for each group of 32 or more.
constexpr int64_t unpacked_tile_floats(int64_t dims) { return kKvTile * (dims + (dims + 31) / 32); }

const AttentionKernels* attention_kernels(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
