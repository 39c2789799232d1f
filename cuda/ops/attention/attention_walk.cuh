// SPDX-License-Identifier: Apache-2.0
// The entries of its sequence that a row attends to, chunk by chunk: position p is in slot p % 256
// of chunk p / 256. With implied positions a chunk is a range. With listed positions, or rows that
// form a tree, entries are tested one by one, and a chunk ends where positions stop ascending, as
// on the CPU (engine/cpu/attention/attention_walk.cpp).
#pragma once

#include "cuda/ops/device.cuh"
#include "engine/kv_layer.h"

namespace gen::cuda {

constexpr int32_t kChunk = engine::kKvChunk;

/// The walk of one row. All threads hold the same values, except for the lists that `next` fills.
class RowWalk {
 public:
  GEN_DEVICE void begin(const engine::KvLayer& layer, const engine::KvRows& rows, int32_t row) {
    window_ = layer.window;
    chunk_ = layer.chunk;
    positions_ = at(rows.positions);
    visible_ = at(rows.visible);
    first_entry_ = rows.first_entry;
    words_ = (rows.n_rows + 63) / 64;
    row_ = row;
    own_entry_ = rows.first_entry + row;
    first_position_ = positions_ != nullptr ? positions_[0] : rows.first_position;
    next_ = 0;
    if (implied()) {
      lowest_ = window_ > 0 && own_entry_ + 1 > window_ ? own_entry_ + 1 - window_ : 0;
      if (chunk_ > 0) {
        const int32_t from = own_entry_ - (own_entry_ + first_position_) % chunk_;
        lowest_ = from > lowest_ ? from : lowest_;
      }
      next_ = first_chunk();
      return;
    }
    branch_position_ = first_position_ + first_entry_;
    own_position_ = branch_position_;
    if (positions_ != nullptr) {
      own_position_ = positions_[own_entry_];
    } else {
      for (int32_t e = first_entry_; e < own_entry_; ++e) own_position_ += sees(e) ? 1 : 0;
    }
    end_ = first_entry_ + rows.n_rows;
  }

  [[nodiscard]] GEN_DEVICE bool implied() const {
    return positions_ == nullptr && visible_ == nullptr;
  }

  /// With implied positions: the lowest entry that is attended to, and the row's own, which is the
  /// last.
  [[nodiscard]] GEN_DEVICE int32_t lowest() const { return lowest_; }
  [[nodiscard]] GEN_DEVICE int32_t own_entry() const { return own_entry_; }

  /// With implied positions: the first chunk and the number of chunks.
  [[nodiscard]] GEN_DEVICE int32_t first_chunk() const {
    return (lowest_ + first_position_) / kChunk;
  }
  [[nodiscard]] GEN_DEVICE int32_t n_chunks() const {
    return (own_entry_ + first_position_) / kChunk - first_chunk() + 1;
  }
  /// The i-th chunk of these: slots [*from, *to) are attended to, slot 0 is entry *base. False
  /// after the last.
  GEN_DEVICE bool chunk_at(int32_t i, int32_t* base, int32_t* from, int32_t* to) const {
    *base = (first_chunk() + i) * kChunk - first_position_;
    if (*base > own_entry_) return false;
    *from = lowest_ > *base ? lowest_ - *base : 0;
    *to = own_entry_ + 1 - *base < kChunk ? own_entry_ + 1 - *base : kChunk;
    return true;
  }

  /// The next chunk: entries[slot] for the slots in [*from, *to), -1 for slots not attended to.
  /// False after the last. Called by all threads of the block; `range` is shared memory for two
  /// numbers.
  GEN_DEVICE bool next(const Shared<int32_t>& entries, const Shared<int32_t>& range, int32_t* from,
                       int32_t* to) {
    if (implied()) {
      int32_t base = 0;
      if (!chunk_at(next_ - first_chunk(), &base, from, to)) return false;
      for (int32_t i = *from + thread_x(); i < *to; i += block_threads()) {
        entries[i] = base + i;
      }
      ++next_;
      sync_threads();
      return true;
    }
    for (int32_t i = thread_x(); i < kChunk; i += block_threads()) entries[i] = -1;
    sync_threads();
    // The first thread walks; the others only get its results.
    if (thread_x() == 0) list(entries, range);
    sync_threads();
    *from = range[0];
    *to = range[1];
    return *from < *to;
  }

 private:
  [[nodiscard]] GEN_DEVICE bool sees(int32_t entry) const {
    const int32_t column = entry - first_entry_;
    if (column < 0) return true;
    if (visible_ == nullptr) return entry <= own_entry_;
    return (visible_[row_ * words_ + column / 64] >> (column % 64) & 1U) != 0;
  }

  GEN_DEVICE void list(const Shared<int32_t>& entries, const Shared<int32_t>& range) {
    int32_t begin = kChunk;
    int32_t end = 0;
    int32_t id = 0;
    for (; next_ < end_; ++next_) {
      if (!sees(next_)) continue;
      int32_t position = first_position_ + next_;
      if (positions_ != nullptr) {
        position = positions_[next_];
      } else if (next_ >= first_entry_) {
        position = branch_position_;
      }
      const bool hidden = (window_ > 0 && position <= own_position_ - window_) ||
                          (chunk_ > 0 && position < own_position_ - own_position_ % chunk_);
      if (!hidden) {
        const int32_t slot = position % kChunk;
        if (begin < end && (position / kChunk != id || slot < end)) break;
        id = position / kChunk;
        entries[slot] = next_;
        begin = slot < begin ? slot : begin;
        end = slot + 1;
      }
      if (next_ >= first_entry_) ++branch_position_;
    }
    range[0] = begin;
    range[1] = end;
  }

  const int32_t* positions_;
  const uint64_t* visible_;
  int32_t first_position_;
  int32_t own_entry_;
  int32_t own_position_;
  int32_t branch_position_;
  int32_t lowest_ = 0;
  int32_t next_;  // chunk, or entry
  int32_t end_;
  int32_t first_entry_;
  int32_t window_;
  int32_t chunk_;
  int32_t words_;
  int32_t row_;
};

}  // namespace gen::cuda
