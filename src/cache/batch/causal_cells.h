// SPDX-License-Identifier: Apache-2.0
// The rules of causal attention for many sequences in one memory: which cells a batch takes, and
// which entries may be dropped, seen, shared, removed and moved. Each change has two parts, so that
// several caches can agree: plan_...() checks whether it is possible and takes the memory that it
// needs; the second part cannot fail. The owner decides what the cells contain: causal_store.h,
// lane_store.h.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/batch/cell_map.h"

namespace gen::cache {

constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();

/// A token at position p sees positions q of its sequence with q <= p, q >= p - window and, with
/// chunks, q / chunk == p / chunk. Entries more than `memory` before the next position are dropped.
struct CausalRules {
  int32_t window = kNoLimit;
  int32_t memory = kNoLimit;  // at least window
  int32_t chunk = 0;          // 0: none
};

struct CellLimits {
  int32_t max_sequences = 1;
  int32_t capacity = 1;   // entries of a sequence, on average: cells are a common pool
  int32_t max_batch = 1;  // tokens
  int32_t padding = 1;    // the number of cells is a multiple of it
};

class CausalCells {
 public:
  /// A window of 0 is none, a memory of 0 the window; memory is raised to hold one entry beside the
  /// window when there are several sequences, and is no limit where it is at least the capacity.
  /// kInvalidArgument for numbers below 1 (rules: 0), a memory below the window, and more cells
  /// than 2^31 - 1.
  static Result<CausalCells> create(CausalRules rules, const CellLimits& limits);

  [[nodiscard]] const CausalRules& rules() const noexcept { return rules_; }
  [[nodiscard]] const CellMap& map() const noexcept { return map_; }
  [[nodiscard]] int32_t n_cells() const noexcept { return map_.free_cells().size(); }
  /// Most entries of one sequence; 0 for no limit. Those that have more keep them.
  void set_quota(int32_t entries) noexcept { quota_ = entries; }

  /// The first position that a token at `position` sees.
  [[nodiscard]] int32_t first_seen(int32_t position) const noexcept;
  /// The last position that it sees if later ones are visible.
  [[nodiscard]] int32_t last_seen(int32_t position) const noexcept;

  /// Tokens of one sequence in a batch.
  struct Group {
    int32_t id;
    int32_t slot;
    int32_t lowest;  // smallest position
    int32_t count;
  };
  /// Cells for a batch.
  struct BatchPlan {
    std::vector<int32_t> cells;                      // of each token
    std::vector<int32_t> positions;                  // of each token
    std::vector<int32_t> slots;                      // of each token's sequence
    std::vector<Group> groups;                       // by id
    std::vector<std::pair<int32_t, int32_t>> drops;  // slot, entries from the front
  };
  /// Plans free cells in ascending order, including those that this batch drops from the memory
  /// window. Errors: kInvalidArgument for an invalid batch; kCacheFull if cells or sequences are
  /// missing, or a quota would be exceeded. Cost: O(batch * log + sequences + dropped).
  Result<BatchPlan> plan_batch(std::span<const int32_t> positions,
                               std::span<const int32_t> sequences);
  void commit(const BatchPlan& plan) noexcept;

  /// Plans cells for n entries at `position` and after it, which must come after all others. The
  /// cells follow the last one or are an empty run, so that entries read together are contiguous.
  /// They stay planned until commit_planned(), drop_planned() or the next plan. If cells are short,
  /// droppable entries are dropped. kCacheFull.
  Status plan_more(int32_t slot, int32_t position, int32_t n);
  void commit_planned(int32_t slot, int32_t position) noexcept;
  void drop_planned(int32_t slot) noexcept { map_.drop_planned(slot); }
  /// The number of entries that can follow those of a slot, over several plans, if nobody else
  /// takes any.
  [[nodiscard]] int32_t room(int32_t slot) const noexcept;
  /// A free slot must exist.
  int32_t open(int32_t id) noexcept { return map_.open(id); }
  void close(int32_t slot) noexcept;
  /// Keeps the entries before `position`, and nothing planned; the sequence stays open.
  void cut(int32_t slot, int32_t position) noexcept;

  /// dst becomes src's entries before `length`, by reference; src != dst, length >= 0. Drops what
  /// was planned for dst. kCacheFull if dst is new and there is no room for a sequence.
  Status plan_copy(int32_t src, int32_t dst, int32_t length);
  void copy_prefix(int32_t src, int32_t dst, int32_t length) noexcept;
  /// The same between two open sequences, by slot.
  void plan_share(int32_t from, int32_t to, int32_t length);
  void share(int32_t from, int32_t to, int32_t length) noexcept;

  /// Whether a sequence may continue at `position` with the entries it has.
  [[nodiscard]] bool can_resume(int32_t id, int32_t position) const noexcept;
  /// Whether all entries that a token at `position` sees are still there.
  [[nodiscard]] bool holds_past_of(int32_t slot, int32_t position) const noexcept;

  /// A removal of entries from a sequence; the entries after them move closer by `by`.
  struct Removal {
    int32_t slot = -1;  // -1: nothing to do
    int32_t from = 0;   // entries [from, to) go
    int32_t to = 0;
    int32_t dropped = 0;           // what dropped_ becomes
    int32_t by = 0;                // and those from `to` on are moved by this, 0 or below
    std::vector<CellMove> copies;  // shared cells that are moved need a copy first
  };
  /// Plans the removal of positions [begin, end) of a sequence; kNoLimit as end: all from begin on.
  /// Errors: kInvalidArgument for an invalid range; kUnsupported if positions must be shifted but
  /// cannot be, or would be next to dropped ones; kCacheFull without room for copies.
  Result<Removal> plan_remove(int32_t id, int32_t begin, int32_t end, bool can_shift) const;
  /// The entries that move are those from removal.from on afterwards.
  void remove(const Removal& removal) noexcept;

  /// At most `budget` moves from the last cells into the first free ones, in the order of `from`.
  [[nodiscard]] std::vector<CellMove> plan_compact(int32_t budget) const;
  void compact(std::span<const CellMove> moves) noexcept { map_.move(moves); }

  [[nodiscard]] size_t bytes() const noexcept {
    return map_.bytes() + dropped_.capacity() * sizeof(int32_t);
  }

 private:
  CausalCells(CausalRules rules, const CellLimits& limits, int32_t cells)
      : rules_(rules),
        max_batch_(limits.max_batch),
        map_(cells, limits.max_sequences),
        dropped_(static_cast<size_t>(limits.max_sequences)) {}

  Result<std::vector<Group>> group(std::span<const int32_t> positions,
                                   std::span<const int32_t> sequences) const;
  /// The number of entries at the front of a list that are not needed when `position` comes next.
  [[nodiscard]] int32_t droppable(int32_t slot, int32_t position) const noexcept;
  [[nodiscard]] int32_t next_position(int32_t slot) const noexcept;
  void drop(int32_t slot, int32_t count) noexcept;
  void trim_all() noexcept;
  [[nodiscard]] int32_t empty_tile() const noexcept;

  CausalRules rules_;
  int32_t max_batch_;
  int32_t quota_ = 0;
  CellMap map_;
  /// For each slot: positions below this may have been dropped from the front; 0 for none.
  std::vector<int32_t> dropped_;
};

}  // namespace gen::cache
