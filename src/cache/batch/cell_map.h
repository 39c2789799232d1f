// SPDX-License-Identifier: Apache-2.0
// Which cells of a shared memory belong to which sequences. A cell has room for one position's keys
// and values; a sequence is a list of (position, cell) in the order of positions; a cell may be in
// the lists of several sequences, for example after a prefix was copied. causal_cells.h has the
// rules for dropping and visibility.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/batch/cell_set.h"

namespace gen::cache {

/// A move of the contents of `from` to `to`.
struct CellMove {
  int32_t from;
  int32_t to;
};

/// A sequence has a number chosen by the caller and, while it is open, a slot in [0,
/// max_sequences()).
/// Invariant: a cell is free, or on at least one list, or planned by one sequence.
/// Threads: not synchronised. Only the constructor and reserve() allocate (and may throw); all else
/// works in place.
class CellMap {
 public:
  CellMap(int32_t cells, int32_t max_sequences);

  [[nodiscard]] const CellSet& free_cells() const noexcept { return free_; }
  /// Lists that name the cell.
  [[nodiscard]] int32_t references(int32_t cell) const noexcept {
    return references_[static_cast<size_t>(cell)];
  }

  struct Sequence {
    int32_t id;
    int32_t slot;
  };
  /// Those that are open, by id.
  [[nodiscard]] std::span<const Sequence> sequences() const noexcept { return open_; }
  [[nodiscard]] int32_t max_sequences() const noexcept { return max_sequences_; }
  /// The slot of an open sequence, or -1. Cost: O(log sequences).
  [[nodiscard]] int32_t find(int32_t id) const noexcept;
  /// The slot that open() will return after `later` further calls, or -1.
  [[nodiscard]] int32_t next_slot(int32_t later) const noexcept;
  /// Opens an empty sequence; a free slot must exist.
  int32_t open(int32_t id) noexcept;
  /// Drops the whole list and the slot.
  void close(int32_t slot) noexcept;

  /// A sequence's list.
  [[nodiscard]] std::span<const int32_t> positions(int32_t slot) const noexcept {
    const List& list = lists_[static_cast<size_t>(slot)];
    return {list.positions.data() + list.head, list.positions.size() - list.head};
  }
  /// Cells of the same entries, and after them the planned ones.
  [[nodiscard]] std::span<const int32_t> cells(int32_t slot) const noexcept {
    const List& list = lists_[static_cast<size_t>(slot)];
    return {list.cells.data() + list.head, list.cells.size() - list.head};
  }
  [[nodiscard]] int32_t size(int32_t slot) const noexcept {
    return static_cast<int32_t>(positions(slot).size());
  }
  /// Index of the first entry at `position` or later.
  [[nodiscard]] int32_t lower_bound(int32_t slot, int32_t position) const noexcept;

  /// Makes room for n more entries of a slot, open or not.
  void reserve(int32_t slot, int32_t n);
  /// Adds an entry after those of the same position; the cell is free, or shared from now on. There
  /// must be room, and no planned cells.
  void insert(int32_t slot, int32_t position, int32_t cell) noexcept;
  /// Removes entries [from, to).
  void erase(int32_t slot, int32_t from, int32_t to) noexcept;
  /// Adds `by` to the positions of entries from `from` on; their order must stay.
  void shift(int32_t slot, int32_t from, int32_t by) noexcept;
  /// Puts a free cell in place of an entry's.
  void replace(int32_t slot, int32_t index, int32_t cell) noexcept;

  /// Cells that a sequence will use next: taken, but on no list. There must be room.
  void plan(int32_t slot, int32_t cell) noexcept;
  [[nodiscard]] int32_t planned(int32_t slot) const noexcept {
    return static_cast<int32_t>(cells(slot).size()) - size(slot);
  }
  /// Makes planned cells entries at `position` and after it, which must be the last ones.
  void commit_planned(int32_t slot, int32_t position) noexcept;
  void drop_planned(int32_t slot) noexcept;

  /// Puts free cells in place of used ones on all lists. Moves are in the order of `from`.
  /// Cost: O(entries * log moves).
  void move(std::span<const CellMove> moves) noexcept;

  [[nodiscard]] size_t bytes() const noexcept;

 private:
  /// Entries from `head` on; earlier ones were dropped from the front.
  struct List {
    std::vector<int32_t> positions;
    std::vector<int32_t> cells;
    size_t head = 0;
  };

  void add_reference(int32_t cell) noexcept;
  void drop_reference(int32_t cell) noexcept;

  CellSet free_;
  std::vector<int32_t> references_;
  int32_t max_sequences_;
  std::vector<Sequence> open_;         // by id; room for all
  std::vector<int32_t> closed_slots_;  // the next one last
  std::vector<List> lists_;
};

}  // namespace gen::cache
