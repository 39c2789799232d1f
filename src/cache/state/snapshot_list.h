// SPDX-License-Identifier: Apache-2.0
// SnapshotList: the snapshots of one sequence's state, or of its windows, and which of them stay
// when their memory is limited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "cache/snapshot_place.h"
#include "cache/state_snapshot.h"

namespace gen::cache {

/// Ascending by length. Snapshots that share memory are counted once and go together. When the
/// budget is exceeded, those go whose loss costs least: the rows to run again from the snapshot
/// before, times how probable a cut between it and the next one is. Cuts are the less probable the
/// further they lie from the end, in inverse proportion, so old snapshots thin out exponentially;
/// at borders there are more of them. The newest snapshot and the two newest borders go last. Those
/// that take no bytes stay.
/// Threads: not synchronised.
class SnapshotList {
 public:
  using Snapshot = std::shared_ptr<const StateSnapshot>;
  struct Entry {
    Snapshot snapshot;
    SnapshotPlace place = SnapshotPlace::kPlain;
  };

  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }
  /// The newest one of at most `n` positions; null if there is none.
  [[nodiscard]] Snapshot at_most(int32_t n) const noexcept;
  /// The one of `n` positions, or null.
  [[nodiscard]] Snapshot at(int32_t n) const noexcept;
  [[nodiscard]] size_t budget() const noexcept { return budget_; }
  [[nodiscard]] size_t bytes() const noexcept { return bytes_; }

  /// Takes effect at once.
  void set_budget(size_t bytes) noexcept;
  /// Memory for `more` entries; std::bad_alloc.
  void reserve(size_t more);
  /// Adds one that is no shorter than the others, after reserve(); of one length there is only one.
  /// What exceeds the budget goes, even the new one.
  void add(Snapshot snapshot, SnapshotPlace place) noexcept;
  /// Adds those of another list that are shorter than all of this one; std::bad_alloc.
  void insert(const SnapshotList& others);
  /// Drops all that are longer than `n`.
  void cut(int32_t n) noexcept;
  /// Puts one of the same length in the place of entry `i`; null: removes the entry. What exceeds
  /// the budget then goes.
  void replace(size_t i, Snapshot by) noexcept;

 private:
  /// Entries [first, end) share memory.
  struct Run {
    size_t first = 0;
    size_t end = 0;
  };
  [[nodiscard]] Run run_from(size_t first) const noexcept;
  [[nodiscard]] double loss(const Run& run) const noexcept;
  [[nodiscard]] Run victim() const noexcept;
  void count() noexcept;
  void fit() noexcept;

  std::vector<Entry> entries_;
  size_t bytes_ = 0;
  size_t budget_ = std::numeric_limits<size_t>::max();
};

}  // namespace gen::cache
