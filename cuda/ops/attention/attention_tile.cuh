// SPDX-License-Identifier: Apache-2.0
// Code shared by the prefill kernels, in which a block has 32 queries of a sequence that share a kv
// head, and a warp four of them: the queries and slots of a tile, weights from scores, and the
// merge of a chunk. A lane has the scores of eight slots, see slot_of().
#pragma once

#include "cuda/device/words.h"
#include "cuda/ops/attention/attention_stage.cuh"

namespace gen::cuda {

using device::UInt4;

constexpr int32_t kTileThreads = kChunk;
constexpr int32_t kOwn = 4;  // queries of a warp
constexpr int32_t kQueries = kTileThreads / 32 * kOwn;
constexpr int32_t kEntries = kChunk / 32;  // of a lane
constexpr int32_t kMaxValueDim = 256;

/// Queries [first, first + n) of sequence s: query i is row i / group, head i % group of the group.
struct Tile {
  int32_t sequence;
  int32_t first;
  int32_t n;
};

/// Tiles of kCount queries are numbered across all sequences. False after the last.
template <int32_t kCount>
GEN_DEVICE bool find_tile(const AttentionView& of, int32_t group, int32_t number, Tile* tile) {
  for (int32_t s = 0; s < of.n_sequences; ++s) {
    const int32_t queries = of.sequences[s].n_rows * group;
    const int32_t tiles = (queries + kCount - 1) / kCount;
    if (number < tiles) {
      const int32_t left = queries - number * kCount;
      *tile = {s, number * kCount, left < kCount ? left : kCount};
      return true;
    }
    number -= tiles;
  }
  return false;
}

/// q[d][query] of a tile, zeros behind the last query; a block.
GEN_DEVICE void load_queries(const AttentionView& of, const engine::KvRows& rows, int32_t kv_head,
                             int32_t group, const Tile& tile, const Shared<float>& q) {
  for (int32_t i = warp_of_block(); i < kQueries; i += block_threads() / 32) {
    const int32_t query = tile.first + i;
    const float* const from = of.q.data + (rows.first_row + query / group) * of.q.stride +
                              int64_t{kv_head * group + query % group} * of.k_dim;
    for (int32_t d = lane_of_warp(); d < of.k_dim; d += 32) {
      q[d * kQueries + i] = i < tile.n ? from[d] : 0.0F;
    }
  }
}

GEN_DEVICE Slots slots_of(int32_t base, int32_t lowest, int32_t last) {
  return {lowest > base ? lowest - base : 0, last + 1 - base < kChunk ? last + 1 - base : kChunk};
}

struct Four {
  float of[4];
};
GEN_DEVICE Four floats(const UInt4& bits) {
  return {{float_from_bits(bits.x), float_from_bits(bits.y), float_from_bits(bits.z),
           float_from_bits(bits.w)}};
}

/// The slot of a lane's entry j.
GEN_DEVICE int32_t slot_of(int32_t j) { return j / 4 * (kChunk / 2) + 4 * lane_of_warp() + j % 4; }

/// The slots of a chunk that a tile's queries attend to: any of them, each of this warp's, and all
/// of this warp's.
struct SeenSlots {
  Slots by_any;
  Slots seen[kOwn];
  Slots by_all;
};

/// The entries that a tile attends to, and in shared memory those of each query: the lowest and the
/// last. Padding queries have the range of the tile.
struct TileRange {
  int32_t lowest;
  int32_t last;
  int32_t first_chunk;
  int32_t end_chunk;
  Shared<int32_t> own;  // [queries][2]

  [[nodiscard]] GEN_DEVICE SeenSlots slots(int32_t base) const {
    SeenSlots slots;
    slots.by_any = slots_of(base, lowest, last);
    slots.by_all = slots.by_any;
    GEN_UNROLL
    for (int32_t i = 0; i < kOwn; ++i) {
      const int32_t query = warp_of_block() * kOwn + i;
      const int32_t own_lowest = own[2 * query];
      const int32_t own_last = own[2 * query + 1];
      slots.seen[i] = slots_of(base, own_lowest, own_last);
      Slots& all = slots.by_all;
      all.from = slots.seen[i].from > all.from ? slots.seen[i].from : all.from;
      all.to = slots.seen[i].to < all.to ? slots.seen[i].to : all.to;
    }
    return slots;
  }
};
/// A barrier must precede slots().
GEN_DEVICE TileRange range_of(const AttentionView& of, const engine::KvRows& rows, int32_t group,
                              const Tile& tile, const Shared<int32_t>& own) {
  RowWalk walk;
  walk.begin(of.layer, rows, tile.first / group);
  const int32_t lowest = walk.lowest();
  const int32_t first_chunk = walk.first_chunk();
  walk.begin(of.layer, rows, (tile.first + tile.n - 1) / group);
  const int32_t last = walk.own_entry();
  const int32_t query = thread_x();
  if (query < kQueries) {
    own[2 * query] = lowest;
    own[2 * query + 1] = last;
    if (query < tile.n) {
      walk.begin(of.layer, rows, (tile.first + query) / group);
      own[2 * query] = walk.lowest();
      own[2 * query + 1] = walk.own_entry();
    }
  }
  return {lowest, last, first_chunk, (last + rows.first_position) / kChunk + 1, own};
}

/// Replaces raw scores by weights; also gives the largest score of each query.
GEN_DEVICE void make_weights(const AttentionView& of, const float* log_weights, int32_t base,
                             const SeenSlots& slots, float (&scores)[kOwn][kEntries],
                             float (&largest)[kOwn]) {
  float weights[kEntries];
  GEN_UNROLL
  for (int32_t j = 0; j < kEntries; ++j) {
    const int32_t slot = slot_of(j);
    const bool has = log_weights != nullptr && slots.by_any.has(slot);
    weights[j] = has ? log_weights[base + slot] : 0.0F;
  }
  GEN_UNROLL
  for (int32_t i = 0; i < kOwn; ++i) {
    float most = minus_infinity();
    GEN_UNROLL
    for (int32_t j = 0; j < kEntries; ++j) {
      if (!slots.seen[i].has(slot_of(j))) continue;
      most = max_of(ruled(of, scores[i][j], weights[j], 0.0F), most);
    }
    for (uint32_t apart = 16; apart > 0; apart /= 2) {
      most = max_of(most, shuffle_xor(most, apart));
    }
    largest[i] = most;
    const float shift = most == minus_infinity() ? 0.0F : most;
    GEN_UNROLL
    for (int32_t j = 0; j < kEntries; ++j) {
      const float score = ruled(of, scores[i][j], weights[j], shift);
      scores[i][j] = slots.seen[i].has(slot_of(j)) ? exp2_weight(score) : 0.0F;
    }
  }
}

/// Stores a warp's weights in its part of `to`, [warps][256 slots][4 queries], and returns the
/// maxima and sums of the chunk.
GEN_DEVICE void put_weights(const Shared<float>& to, const float (&weights)[kOwn][kEntries],
                            const float (&largest)[kOwn], SoftmaxState (&partials)[kOwn]) {
  const int32_t lane = lane_of_warp();
  const int32_t warp = warp_of_block();
  const Shared<UInt4> fours = to.as<UInt4>();
  GEN_UNROLL
  for (int32_t j = 0; j < kEntries; ++j) {
    fours[warp * kChunk + slot_of(j)] = UInt4{float_bits(weights[0][j]), float_bits(weights[1][j]),
                                              float_bits(weights[2][j]), float_bits(weights[3][j])};
  }
  sync_warp();
  // Sums over sixteen virtual lanes, of two queries at once.
  GEN_UNROLL
  for (int32_t i = 0; i < kOwn; i += 2) {
    float sum = 0.0F;
    for (int32_t slot = lane % 16; slot < kChunk; slot += 16) {
      sum = sum + to[(warp * kChunk + slot) * kOwn + i + lane / 16];
    }
    sum = sum_sixteen(sum);
    partials[i].sum = shuffle(sum, 0);
    partials[i + 1].sum = shuffle(sum, 16);
  }
  GEN_UNROLL
  for (int32_t i = 0; i < kOwn; ++i) {
    const bool nothing_but = largest[i] == minus_infinity() && partials[i].sum != 0.0F;
    partials[i].max = nothing_but ? partials[i].sum : largest[i];
  }
}

/// The states of a warp's queries, of tile queries [first, first + kOwn), before their first chunk.
GEN_DEVICE void begin_states(const AttentionView& of, int32_t kv_head, int32_t group, int32_t first,
                             SoftmaxState (&states)[kOwn]) {
  GEN_UNROLL
  for (int32_t i = 0; i < kOwn; ++i) {
    states[i] = before_chunks(of, kv_head * group + (first + i) % group);
  }
}

/// Merges a chunk. One whose scores are all -infinity adds nothing.
template <size_t kPer>
GEN_DEVICE void merge_partials(const SoftmaxState (&partials)[kOwn],
                               const float (&partial_sums)[kOwn][kPer],
                               SoftmaxState (&states)[kOwn], float (&sums)[kOwn][kPer]) {
  GEN_UNROLL
  for (int32_t i = 0; i < kOwn; ++i) {
    if (partials[i].max == minus_infinity()) continue;
    const float most = states[i].max > partials[i].max ? states[i].max : partials[i].max;
    const float old_factor = exp2_weight(states[i].max - most);
    const float new_factor = exp2_weight(partials[i].max - most);
    const bool fresh = states[i].max == minus_infinity();
    states[i].sum =
        multiply_add(fresh ? 0.0F : states[i].sum, old_factor, partials[i].sum * new_factor);
    states[i].max = most;
    GEN_UNROLL
    for (int32_t j = 0; j < static_cast<int32_t>(kPer); ++j) {
      sums[i][j] =
          multiply_add(fresh ? 0.0F : sums[i][j], old_factor, partial_sums[i][j] * new_factor);
    }
  }
}

/// On tensor cores (attention_mma.cu), if bits need not match the CPU engine and the cache and the
/// device support it.
bool attention_mma_can(const OpContext& context, const AttentionView& of);
Status attention_mma(const OpContext& context, const AttentionView& of);

/// For float32 and float16 caches (attention_tile_plain.cu), if the device has enough shared
/// memory; has the same grid as attention_tile().
bool attention_tile_plain_can(const OpContext& context, const AttentionView& of);
Status attention_tile_plain(const OpContext& context, const AttentionView& of,
                            const device::Dim3& grid);

}  // namespace gen::cuda
