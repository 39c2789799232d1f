// SPDX-License-Identifier: Apache-2.0
// Attention of a few rows over long contexts: threads take single chunks, and the thread that
// finishes an item merges its partials in chunk order. Chunks are processed in rounds to bound the
// memory of partials.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "engine/cpu/attention/attention_chunk.h"

namespace gen::engine::cpu {

class SplitAttention {
 public:
  /// Items of rows with implied positions, where the `heads` items of the same rows are adjacent.
  /// `item_queries` is the largest number of queries per item.
  SplitAttention(const ChunkAttention& work, int32_t heads, int64_t n_items,
                 int64_t item_queries) noexcept;

  void take_memory(Carver& carver) noexcept;
  /// Writes the rows of all items. spaces[i] is thread i's.
  void run(ThreadPool& pool, std::span<const AttentionItem> items,
           ChunkSpace* const* spaces) noexcept;

 private:
  /// The chunks of a round over all rows; each is processed once per head.
  struct Turns {
    int64_t round;
    int64_t all;
    int64_t whole;  // chunks taken with all heads; the others are taken head by head
  };
  struct Unit {
    int64_t item;
    int64_t chunk;       // index in the round
    int32_t left;        // heads still to process
    int64_t first_item;  // first item of those taken together
  };

  void run_round(ThreadPool& pool, const Turns& turns, ChunkSpace* const* spaces) noexcept;
  [[nodiscard]] Turns turns_of(int64_t round, int32_t threads) const noexcept;
  /// Takes the thread's next unit; false if there is none.
  bool take(const Turns& turns, std::atomic<int64_t>& taken, Unit* unit) const noexcept;
  void merge_round(int64_t item_index, int64_t round) const noexcept;
  [[nodiscard]] int64_t round_chunks(int64_t item_index, int64_t round) const noexcept {
    const RowWalk walk = ChunkAttention::walk_of(items_[static_cast<size_t>(item_index)]);
    return std::clamp<int64_t>(walk.n_chunks() - round * round_chunks_, 0, round_chunks_);
  }
  [[nodiscard]] float* packed(int64_t item_index) const noexcept {
    return packed_ + item_index * item_queries_ * work_.k_dim();
  }

  const ChunkAttention& work_;
  const int32_t heads_;
  const int64_t n_items_;
  const int64_t item_queries_;
  const int64_t round_chunks_;
  std::span<const AttentionItem> items_;
  float* packed_ = nullptr;             // [items, queries, k_dim]
  int32_t* chunks_left_ = nullptr;      // [items] of the round
  SoftmaxPartial* partials_ = nullptr;  // [items, round_chunks, queries]
  float* partial_sums_ = nullptr;       // [items, round_chunks, queries, v_stride]
  SoftmaxPartial* states_ = nullptr;    // [items, queries]
  float* sums_ = nullptr;               // [items, queries, v_stride]
};

}  // namespace gen::engine::cpu
