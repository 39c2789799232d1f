// SPDX-License-Identifier: Apache-2.0
// Iteration over visible entries. Rows with implied positions take whole ranges. Rows of trees and
// of caches with listed positions test entries one by one, which costs a few percent of attention.
// The entries of a step that a tree row attends to have consecutive positions, as if the row's
// branch had been decoded alone.
#include "engine/cpu/attention/attention_walk.h"

#include <limits>

#include "engine/kv/codec.h"

namespace gen::engine::cpu {
namespace {

constexpr int32_t kChunkShift = 8;
static_assert(1 << kChunkShift == kAttentionChunk);

int64_t chunk_of(int64_t position) { return position >> kChunkShift; }
int32_t slot_of(int64_t position) { return static_cast<int32_t>(position & (kAttentionChunk - 1)); }

/// How many of the `count` entries from `entry` on are contiguous.
int32_t together(const KvSide& side, int64_t entry, int32_t count) {
  const int64_t cell = side.cell(entry);
  if (side.blocks != nullptr) {
    count = std::min(count, side.block_size - static_cast<int32_t>(cell % side.block_size));
  }
  if (side.cells == nullptr) return count;
  int32_t n = 1;
  while (n < count && side.cell(entry + n) == cell + n) ++n;
  return n;
}

void append_runs(const KvSide& side, int32_t head, int64_t entry, int32_t slot, int32_t count,
                 KvRun* runs, int32_t* n_runs) {
  while (count > 0) {
    const int32_t here = together(side, entry, count);
    const KvPlace place = side.place(entry);
    const std::byte* tile = kv_tile(side, place, head);
    const std::byte* shared = kv_shared(side, place, head);
    KvRun* last = *n_runs > 0 ? &runs[*n_runs - 1] : nullptr;
    const int32_t lane = last != nullptr ? last->lane + last->count : 0;  // of a continuation
    if (last != nullptr && last->slot + last->count == slot && lane % kKvTile == place.lane &&
        last->tile + static_cast<size_t>(lane / kKvTile) * side.tile_stride == tile &&
        (shared == nullptr ||
         last->shared + static_cast<size_t>(lane / kKvTile) * side.shared_stride == shared)) {
      last->count += here;
    } else {
      runs[(*n_runs)++] = {tile, shared, place.lane, slot, here, 0, side.shared_stride};
    }
    entry += here;
    slot += here;
    count -= here;
  }
}

bool counts_up(const int32_t* positions, int32_t n) {
  for (int32_t i = 1; i < n; ++i) {
    if (positions[i] != positions[i - 1] + 1) return false;
  }
  return true;
}

}  // namespace

void look_ahead(AttentionChunk* chunk, const AttentionChunk& next) noexcept {
  if (chunk->n_key_runs != 1 || next.n_key_runs != 1 || chunk->n_value_runs != 1 ||
      next.n_value_runs != 1) {
    return;
  }
  const auto look = [](KvRun* run, const KvRun& at) {
    run->ahead = at.tile - run->tile;
    if (run->shared != nullptr) run->shared_ahead = at.shared - run->shared;
  };
  look(&chunk->key_runs[0], next.key_runs[0]);
  look(&chunk->value_runs[0], next.value_runs[0]);
}

bool implied_positions(const SequenceRows& sequence) noexcept {
  if (sequence.visible != nullptr) return false;
  return sequence.view.positions == nullptr ||
         counts_up(sequence.view.positions, sequence.first_entry + sequence.n_rows);
}

RowWalk::RowWalk(const SequenceRows& sequence, int32_t row, int32_t rows, int32_t kv_head) noexcept
    : sequence_(sequence),
      view_(sequence.view),
      implied_(implied_positions(sequence)),
      kv_head_(kv_head),
      first_position_(view_.positions != nullptr && sequence.first_entry + sequence.n_rows > 0
                          ? view_.positions[0]
                          : view_.first_position),
      own_entry_(int64_t{sequence.first_entry} + row),
      last_entry_(own_entry_ + rows - 1) {
  if (implied_) return;
  branch_position_ = first_position_ + sequence.first_entry;
  own_position_ = branch_position_;
  if (view_.positions != nullptr) {
    own_position_ = view_.positions[own_entry_];
  } else {
    for (int64_t e = sequence.first_entry; e < own_entry_; ++e) own_position_ += sees(e) ? 1 : 0;
  }
}

int64_t RowWalk::low(int64_t own_entry) const noexcept {
  int64_t lowest = view_.window > 0 ? std::max<int64_t>(0, own_entry + 1 - view_.window) : 0;
  if (view_.chunk > 0) {
    lowest = std::max(lowest, own_entry - (own_entry + first_position_) % view_.chunk);
  }
  return lowest;
}

int64_t RowWalk::n_chunks() const noexcept {
  return chunk_of(last_entry_ + first_position_) - chunk_of(low(own_entry_) + first_position_) + 1;
}

SlotRange RowWalk::slots(const AttentionChunk& chunk, int32_t row) const noexcept {
  if (!implied_) return chunk.used;
  const int64_t own = own_entry_ + row;
  return {static_cast<int32_t>(std::max<int64_t>(low(own) + chunk.base, 0)),
          static_cast<int32_t>(std::min<int64_t>(own + 1 + chunk.base, kAttentionChunk))};
}

void RowWalk::begin(AttentionChunk* chunk) const noexcept {
  chunk->n_key_runs = 0;
  chunk->n_value_runs = 0;
  chunk->used = {kAttentionChunk, 0};
  chunk->base = 0;
  chunk->has_weights = view_.log_weights != nullptr;
  chunk->has_gaps = false;
  if (chunk->has_weights || !implied_) {
    std::fill_n(chunk->weights, kAttentionChunk, -std::numeric_limits<float>::infinity());
  }
}

void RowWalk::append(AttentionChunk* chunk, int64_t entry, int32_t slot,
                     int32_t count) const noexcept {
  append_runs(view_.k, kv_head_, entry, slot, count, chunk->key_runs, &chunk->n_key_runs);
  append_runs(view_.v, kv_head_, entry, slot, count, chunk->value_runs, &chunk->n_value_runs);
  if (view_.log_weights != nullptr) {
    std::copy_n(view_.log_weights + entry, count, chunk->weights + slot);
  } else if (!implied_) {
    std::fill_n(chunk->weights + slot, count, 0.0F);
  }
  chunk->used.begin = std::min(chunk->used.begin, slot);
  chunk->used.end = slot + count;
}

void RowWalk::chunk(int64_t index, AttentionChunk* chunk) const noexcept {
  begin(chunk);
  const int64_t lowest = low(own_entry_) + first_position_;
  const int64_t first = (chunk_of(lowest) + index) << kChunkShift;
  const int64_t from = std::max(first, lowest);
  const int64_t to = std::min(first + kAttentionChunk, last_entry_ + 1 + first_position_);
  chunk->base = first_position_ - first;
  append(chunk, from - first_position_, static_cast<int32_t>(from - first),
         static_cast<int32_t>(to - from));
}

bool RowWalk::next(AttentionChunk* chunk) noexcept {
  if (!implied_) return next_listed(chunk);
  if (next_chunk_ >= n_chunks()) return false;
  this->chunk(next_chunk_++, chunk);
  return true;
}

bool RowWalk::sees(int64_t entry) const noexcept {
  const int64_t column = entry - sequence_.first_entry;
  if (column < 0) return true;
  if (sequence_.visible == nullptr) return entry <= own_entry_;
  const int64_t words = (sequence_.n_rows + 63) / 64;
  const int64_t row = own_entry_ - sequence_.first_entry;
  return ((sequence_.visible[row * words + column / 64] >> (column % 64)) & 1u) != 0;
}

bool RowWalk::next_listed(AttentionChunk* chunk) noexcept {
  begin(chunk);
  const int64_t end = int64_t{sequence_.first_entry} + sequence_.n_rows;
  int64_t id = 0;
  int32_t n_entries = 0;
  for (; next_entry_ < end; ++next_entry_) {
    if (!sees(next_entry_)) continue;
    int64_t position = first_position_ + next_entry_;
    if (view_.positions != nullptr) {
      position = view_.positions[next_entry_];
    } else if (next_entry_ >= sequence_.first_entry) {
      position = branch_position_;
    }
    const bool hidden = (view_.window > 0 && position <= own_position_ - view_.window) ||
                        (view_.chunk > 0 && position < own_position_ - own_position_ % view_.chunk);
    if (!hidden) {
      const int32_t slot = slot_of(position);
      if (n_entries > 0 && (chunk_of(position) != id || slot < chunk->used.end)) break;
      id = chunk_of(position);
      append(chunk, next_entry_, slot, 1);
      ++n_entries;
    }
    if (next_entry_ >= sequence_.first_entry) ++branch_position_;
  }
  if (n_entries == 0) return false;
  chunk->has_gaps = chunk->used.end - chunk->used.begin != n_entries;
  chunk->has_weights = chunk->has_weights || chunk->has_gaps;
  return true;
}

}  // namespace gen::engine::cpu
