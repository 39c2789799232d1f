// SPDX-License-Identifier: Apache-2.0
// The cache entries that a row attends to, as chunks of positions. Chunk c has the entries with
// positions in [c * kAttentionChunk, (c + 1) * kAttentionChunk), each in the slot of its position.
// So the slot of an entry does not depend on block tables, or on whether it was decoded, prefilled
// or part of a tree. attention.cpp runs the kernels over these chunks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/cpu/attention/attention.h"
#include "engine/kv_view.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

struct AttentionChunk {
  KvRun key_runs[kAttentionChunk];
  KvRun value_runs[kAttentionChunk];
  float weights[kAttentionChunk];  // log-weights by slot; -infinity in gaps
  int32_t n_key_runs;
  int32_t n_value_runs;
  SlotRange used;    // slots from the first to the last entry
  int64_t base;      // slot = entry + base where positions are implied
  bool has_weights;  // add `weights` to the scores
  bool has_gaps;     // slots of `used` without an entry
};

/// The part of a run within `range`; may be empty. `stride` is the distance between tiles.
inline KvRun clip(const KvRun& run, SlotRange range, size_t stride) noexcept {
  const int32_t begin = std::max(run.slot, range.begin);
  const int32_t end = std::min(run.slot + run.count, range.end);
  if (begin >= end) return {};
  const int32_t lane = run.lane + begin - run.slot;
  const auto tile = static_cast<size_t>(lane / kKvTile);
  KvRun clipped = run;
  clipped.tile += tile * stride;
  if (run.shared != nullptr) clipped.shared += tile * run.shared_stride;
  clipped.lane = lane % kKvTile;
  clipped.slot = begin;
  clipped.count = end - begin;
  return clipped;
}

/// Lets the kernels of a chunk prefetch `next`, if both chunks are contiguous in memory.
void look_ahead(AttentionChunk* chunk, const AttentionChunk& next) noexcept;

/// True if all rows attend to all entries up to their own and positions are consecutive, so that
/// rows can be processed in blocks.
bool implied_positions(const SequenceRows& sequence) noexcept;

/// Iterates over the chunks visible to a row of a block. A block has one row unless
/// implied_positions().
class RowWalk {
 public:
  /// Rows [row, row + rows) of the sequence, for one kv head.
  RowWalk(const SequenceRows& sequence, int32_t row, int32_t rows, int32_t kv_head) noexcept;

  /// Switches to another kv head, for the same rows; later chunks are of that head.
  void turn_to(int32_t kv_head) noexcept { kv_head_ = kv_head; }
  /// Moves to the next chunk in ascending order; false at the end.
  bool next(AttentionChunk* chunk) noexcept;
  /// With implied positions: how many chunks there are, and the i-th of them.
  [[nodiscard]] int64_t n_chunks() const noexcept;
  void chunk(int64_t index, AttentionChunk* chunk) const noexcept;
  /// The slots of `chunk` visible to a row, `row` counting from the block's first. May be empty.
  [[nodiscard]] SlotRange slots(const AttentionChunk& chunk, int32_t row) const noexcept;

 private:
  bool next_listed(AttentionChunk* chunk) noexcept;
  [[nodiscard]] int64_t low(int64_t own_entry) const noexcept;
  [[nodiscard]] bool sees(int64_t entry) const noexcept;
  void begin(AttentionChunk* chunk) const noexcept;
  void append(AttentionChunk* chunk, int64_t entry, int32_t slot, int32_t count) const noexcept;

  const SequenceRows& sequence_;
  const KvView& view_;
  const bool implied_;
  int32_t kv_head_;
  const int64_t first_position_;
  const int64_t own_entry_;   // of the block's first row
  const int64_t last_entry_;  // of its last row
  int64_t next_chunk_ = 0;
  // The position of the iteration, for one row with listed entries.
  int64_t next_entry_ = 0;
  int64_t branch_position_ = 0;  // position of the next visible entry of this step
  int64_t own_position_ = 0;
};

}  // namespace gen::engine::cpu
