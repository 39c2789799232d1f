// SPDX-License-Identifier: Apache-2.0
// See causal_cells.h.
#include "cache/batch/causal_cells.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/to_size.h"

namespace gen::cache {
namespace {

/// Cells per tile. A run of cells that starts at a tile border is read fastest.
constexpr int32_t kRun = 16;


int32_t last_of(std::span<const int32_t> list) { return list.empty() ? -1 : list.back(); }

Status check(const CausalRules& rules, const CellLimits& limits) {
  if (limits.max_sequences < 1 || limits.capacity < 1 || limits.max_batch < 1 ||
      limits.padding < 1) {
    return error(Code::kInvalidArgument,
                 "%d sequences of %d entries, batches of %d, padding %d: all must be 1 or more",
                 limits.max_sequences, limits.capacity, limits.max_batch, limits.padding);
  }
  if (rules.window < 0 || rules.memory < 0 || rules.chunk < 0) {
    return error(Code::kInvalidArgument, "a window of %d, a memory of %d, chunks of %d: below 0",
                 rules.window, rules.memory, rules.chunk);
  }
  return {};
}

}  // namespace

Result<CausalCells> CausalCells::create(CausalRules rules, const CellLimits& limits) {
  GEN_TRY(check(rules, limits));
  if (rules.window == 0) rules.window = kNoLimit;
  if (rules.memory == 0) rules.memory = rules.window;
  if (rules.memory != kNoLimit && rules.window != kNoLimit && limits.max_sequences > 1) {
    rules.memory = std::max(rules.memory, rules.window + 1);
  }
  if (rules.memory >= limits.capacity) rules.memory = kNoLimit;
  if (rules.memory != kNoLimit && rules.memory < rules.window) {
    return error(Code::kInvalidArgument, "a memory of %d entries for a window of %d", rules.memory,
                 rules.window);
  }
  const int64_t each = rules.memory == kNoLimit ? limits.capacity : rules.memory;
  int64_t cells = limits.max_sequences * each + (rules.memory == kNoLimit ? 0 : limits.max_batch);
  cells = (cells + limits.padding - 1) / limits.padding * limits.padding;
  if (cells > kNoLimit) {
    return error(Code::kInvalidArgument, "%d sequences of %lld entries are too many cells",
                 limits.max_sequences, static_cast<long long>(each));
  }
  return CausalCells(rules, limits, static_cast<int32_t>(cells));
}

int32_t CausalCells::first_seen(int32_t position) const noexcept {
  int32_t first = rules_.window == kNoLimit ? 0 : std::max(0, position - rules_.window);
  if (rules_.chunk > 0) first = std::max(first, position - position % rules_.chunk);
  return first;
}

int32_t CausalCells::last_seen(int32_t position) const noexcept {
  if (rules_.chunk == 0) return kNoLimit;
  const int64_t begin = position - position % rules_.chunk;
  return static_cast<int32_t>(std::min<int64_t>(begin + rules_.chunk - 1, kNoLimit));
}

int32_t CausalCells::next_position(int32_t slot) const noexcept {
  const int32_t last = last_of(map_.positions(slot));
  return last == kNoLimit ? last : last + 1;
}

int32_t CausalCells::droppable(int32_t slot, int32_t position) const noexcept {
  if (rules_.memory == kNoLimit || position <= rules_.memory) return 0;
  const auto list = map_.positions(slot);
  if (list.empty() || list[0] >= position - rules_.memory) return 0;
  return map_.lower_bound(slot, position - rules_.memory);
}

void CausalCells::drop(int32_t slot, int32_t count) noexcept {
  dropped_[to_size(slot)] = map_.positions(slot)[to_size(count - 1)] + 1;
  map_.erase(slot, 0, count);
}

void CausalCells::close(int32_t slot) noexcept {
  map_.close(slot);
  dropped_[to_size(slot)] = 0;
}

// --- A batch of any sequences -------------------------------------------------------------------

Result<std::vector<CausalCells::Group>> CausalCells::group(
    std::span<const int32_t> positions, std::span<const int32_t> sequences) const {
  const size_t n = positions.size();
  if (n == 0 || n > to_size(max_batch_) || sequences.size() != n) {
    return error(Code::kInvalidArgument, "a batch of %zu tokens, outside [1, %d]", n, max_batch_);
  }
  std::vector<Group> groups;
  groups.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    // The last position must have a successor.
    if (positions[i] < 0 || positions[i] == kNoLimit || sequences[i] < 0) {
      return error(Code::kInvalidArgument, "token %zu is at position %d of sequence %d", i,
                   positions[i], sequences[i]);
    }
    groups.push_back({sequences[i], 0, positions[i], 1});
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.id < b.id; });
  size_t last = 0;
  for (size_t i = 1; i < n; ++i) {
    if (groups[i].id != groups[last].id) {
      groups[++last] = groups[i];
      continue;
    }
    groups[last].lowest = std::min(groups[last].lowest, groups[i].lowest);
    ++groups[last].count;
  }
  groups.resize(last + 1);
  int32_t fresh = 0;
  for (Group& one : groups) {
    one.slot = map_.find(one.id);
    if (one.slot >= 0) continue;
    one.slot = map_.next_slot(fresh++);
    if (one.slot < 0) {
      return error(Code::kCacheFull, "no room for sequence %d beside %zu of %d", one.id,
                   map_.sequences().size(), map_.max_sequences());
    }
  }
  return groups;
}

Result<CausalCells::BatchPlan> CausalCells::plan_batch(std::span<const int32_t> positions,
                                                       std::span<const int32_t> sequences) {
  BatchPlan plan;
  GEN_ASSIGN(plan.groups, group(positions, sequences));
  const auto find = [&](int32_t id) {
    return std::lower_bound(plan.groups.begin(), plan.groups.end(), id,
                            [](const Group& g, int32_t key) { return g.id < key; });
  };

  // Entries that leave the memory limit, and the cells that become free.
  std::vector<int32_t> freed;
  if (rules_.memory != kNoLimit) {
    for (const CellMap::Sequence& open : map_.sequences()) {
      const auto own = find(open.id);
      const bool here = own != plan.groups.end() && own->id == open.id;
      const int32_t next = here ? own->lowest : next_position(open.slot);
      const int32_t count = droppable(open.slot, next);
      if (count == 0) continue;
      plan.drops.emplace_back(open.slot, count);
      const auto cells = map_.cells(open.slot);
      freed.insert(freed.end(), cells.begin(), cells.begin() + count);
    }
    std::sort(freed.begin(), freed.end());
    size_t kept = 0;
    for (size_t i = 0; i < freed.size();) {
      size_t end = i;
      while (end < freed.size() && freed[end] == freed[i]) ++end;
      if (std::cmp_equal(end - i, map_.references(freed[i]))) freed[kept++] = freed[i];
      i = end;
    }
    freed.resize(kept);
  }

  for (const Group& one : plan.groups) {
    if (quota_ == 0) break;
    const auto drop = std::find_if(plan.drops.begin(), plan.drops.end(),
                                   [&](const auto& d) { return d.first == one.slot; });
    const int64_t held = map_.size(one.slot) - (drop != plan.drops.end() ? drop->second : 0);
    if (held + one.count > quota_) {
      return error(Code::kCacheFull, "sequence %d holds %lld entries, %d more pass its quota of %d",
                   one.id, static_cast<long long>(held), one.count, quota_);
    }
  }

  const auto n = positions.size();
  plan.cells.reserve(n);
  plan.slots.reserve(n);
  int32_t free = map_.free_cells().next(0);
  for (size_t used = 0; plan.cells.size() < n;) {
    const bool old = used < freed.size() && (free < 0 || freed[used] < free);
    if (!old && free < 0) {
      return error(Code::kCacheFull, "no room for a batch of %zu in %d cells, %zu are free", n,
                   n_cells(), to_size(map_.free_cells().count()) + freed.size());
    }
    plan.cells.push_back(old ? freed[used] : free);
    if (old) {
      ++used;
    } else {
      free = map_.free_cells().next(free + 1);
    }
  }
  for (size_t i = 0; i < n; ++i) plan.slots.push_back(find(sequences[i])->slot);
  plan.positions.assign(positions.begin(), positions.end());
  for (const Group& one : plan.groups) map_.reserve(one.slot, one.count);
  return plan;
}

void CausalCells::commit(const BatchPlan& plan) noexcept {
  for (const auto& [slot, count] : plan.drops) drop(slot, count);
  for (const Group& one : plan.groups) {
    if (map_.find(one.id) >= 0) continue;
    [[maybe_unused]] const int32_t slot = map_.open(one.id);
    GEN_ASSERT(slot == one.slot);
  }
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    map_.insert(plan.slots[i], plan.positions[i], plan.cells[i]);
  }
}

// --- One sequence that grows at its end ---------------------------------------------------------

void CausalCells::trim_all() noexcept {
  for (const CellMap::Sequence& open : map_.sequences()) {
    const int32_t count = droppable(open.slot, next_position(open.slot));
    if (count > 0) drop(open.slot, count);
  }
}

/// The first cell of an entirely free tile, or -1.
int32_t CausalCells::empty_tile() const noexcept {
  const CellSet& free = map_.free_cells();
  for (int32_t cell = free.next(0); cell >= 0; cell = free.next(cell)) {
    const int32_t tile = (cell + kRun - 1) / kRun * kRun;
    int32_t end = tile;
    while (end < n_cells() && end < tile + kRun && free.has(end)) ++end;
    if (end == tile + kRun) return tile;
    cell = end + 1;
  }
  return -1;
}

Status CausalCells::plan_more(int32_t slot, int32_t position, int32_t n) {
  map_.drop_planned(slot);
  if (n < 0 || n > max_batch_) {
    return error(Code::kInvalidArgument, "a plan for %d entries, outside [0, %d]", n, max_batch_);
  }
  if (position < next_position(slot) || position > kNoLimit - n) {
    return error(Code::kInvalidArgument, "entries from position %d on, after %d", position,
                 next_position(slot));
  }
  map_.reserve(slot, n);
  if (map_.free_cells().count() < n) trim_all();
  const int64_t held = map_.size(slot) - droppable(slot, position);
  if (quota_ > 0 && held + n > quota_) {
    return error(Code::kCacheFull, "a sequence holds %lld entries, %d more pass its quota of %d",
                 static_cast<long long>(held), n, quota_);
  }
  if (map_.free_cells().count() < n) {
    return error(Code::kCacheFull, "no room for %d entries in %d cells, %d are free", n, n_cells(),
                 map_.free_cells().count());
  }
  const CellSet& free = map_.free_cells();
  bool tiles = true;  // until there is no free tile
  for (int32_t i = 0; i < n; ++i) {
    const int32_t after = last_of(map_.cells(slot)) + 1;
    int32_t cell = after > 0 && after < n_cells() && free.has(after) ? after : -1;
    if (cell < 0 && tiles) {
      cell = empty_tile();
      tiles = cell >= 0;
    }
    if (cell < 0) cell = free.next(after);
    if (cell < 0) cell = free.next(0);
    map_.plan(slot, cell);
  }
  return {};
}

int32_t CausalCells::room(int32_t slot) const noexcept {
  // With a memory limit old entries are replaced by new ones; the cells suffice for every slot and
  // one batch.
  const bool rolls = rules_.memory != kNoLimit;
  int32_t room = rolls ? kNoLimit : map_.free_cells().count() + map_.planned(slot);
  if (quota_ > 0 && !(rolls && quota_ > rules_.memory)) {
    room = std::min(room, std::max(quota_ - map_.size(slot), 0));
  }
  return room;
}

void CausalCells::commit_planned(int32_t slot, int32_t position) noexcept {
  map_.commit_planned(slot, position);
}

// --- Prefixes, removal, moves -------------------------------------------------------------------

Status CausalCells::plan_copy(int32_t src, int32_t dst, int32_t length) {
  const int32_t from = map_.find(src);
  if (from < 0 || map_.lower_bound(from, length) == 0) return {};
  int32_t to = map_.find(dst);
  if (to < 0) to = map_.next_slot(0);
  if (to < 0) {
    return error(Code::kCacheFull, "no room for sequence %d beside %zu of %d", dst,
                 map_.sequences().size(), map_.max_sequences());
  }
  plan_share(from, to, length);
  return {};
}

void CausalCells::copy_prefix(int32_t src, int32_t dst, int32_t length) noexcept {
  const int32_t from = map_.find(src);
  int32_t to = map_.find(dst);
  if (from < 0 || map_.lower_bound(from, length) == 0) {
    if (to >= 0) close(to);
    return;
  }
  if (to < 0) to = map_.open(dst);
  share(from, to, length);
}

void CausalCells::plan_share(int32_t from, int32_t to, int32_t length) {
  map_.reserve(to, map_.lower_bound(from, length));
}

void CausalCells::share(int32_t from, int32_t to, int32_t length) noexcept {
  map_.drop_planned(to);
  map_.erase(to, 0, map_.size(to));
  const int32_t entries = map_.lower_bound(from, length);
  for (int32_t i = 0; i < entries; ++i) {
    map_.insert(to, map_.positions(from)[to_size(i)], map_.cells(from)[to_size(i)]);
  }
  dropped_[to_size(to)] = entries > 0 ? dropped_[to_size(from)] : 0;
}

void CausalCells::cut(int32_t slot, int32_t position) noexcept {
  map_.drop_planned(slot);
  map_.erase(slot, map_.lower_bound(slot, position), map_.size(slot));
  if (map_.size(slot) == 0) dropped_[to_size(slot)] = 0;
}

bool CausalCells::can_resume(int32_t id, int32_t position) const noexcept {
  if (position < 0) return false;
  if (rules_.memory == kNoLimit) return true;
  const int32_t slot = map_.find(id);
  if (slot < 0 || map_.size(slot) == 0) return false;
  const auto list = map_.positions(slot);
  const int32_t first = rules_.window == kNoLimit ? 0 : std::max(0, position - rules_.window);
  return first >= list[0] && position <= next_position(slot);
}

bool CausalCells::holds_past_of(int32_t slot, int32_t position) const noexcept {
  if (position == 0 || dropped_[to_size(slot)] == 0) return true;
  return dropped_[to_size(slot)] <= first_seen(position);
}

Result<CausalCells::Removal> CausalCells::plan_remove(int32_t id, int32_t begin, int32_t end,
                                                      bool can_shift) const {
  if (begin < 0 || end < begin) {
    return error(Code::kInvalidArgument, "positions [%d, %d) are no range", begin, end);
  }
  Removal removal;
  const int32_t slot = map_.find(id);
  if (slot < 0 || begin == end) return removal;
  removal.slot = slot;
  removal.from = map_.lower_bound(slot, begin);
  removal.to = end == kNoLimit ? map_.size(slot) : map_.lower_bound(slot, end);
  removal.dropped = dropped_[to_size(slot)];
  if (removal.to == map_.size(slot)) return removal;
  removal.by = begin - end;
  if (!can_shift) {
    return error(Code::kUnsupported, "positions after %d of sequence %d cannot be shifted here",
                 end, id);
  }
  // Dropped positions must not enter the window of later tokens again.
  if (removal.dropped > begin) {
    removal.dropped = removal.dropped < end ? begin : removal.dropped + removal.by;
  }
  if (removal.dropped > first_seen(next_position(slot) + removal.by)) {
    return error(Code::kUnsupported,
                 "without [%d, %d) the window of sequence %d reaches dropped positions: remove it "
                 "from there on and evaluate it again",
                 begin, end, id);
  }
  int32_t free = -1;
  const auto cells = map_.cells(slot);
  for (int32_t i = removal.to; i < map_.size(slot); ++i) {
    if (map_.references(cells[to_size(i)]) == 1) continue;
    free = map_.free_cells().next(free + 1);
    if (free < 0) {
      return error(Code::kCacheFull,
                   "entries of sequence %d are shared and need copies, %d of %d cells are free", id,
                   map_.free_cells().count(), n_cells());
    }
    removal.copies.push_back({cells[to_size(i)], free});
  }
  return removal;
}

void CausalCells::remove(const Removal& removal) noexcept {
  const int32_t slot = removal.slot;
  if (slot < 0) return;
  if (removal.by != 0) {
    auto copy = removal.copies.begin();
    for (int32_t i = removal.to; copy != removal.copies.end(); ++i) {
      if (map_.cells(slot)[to_size(i)] == copy->from) map_.replace(slot, i, (copy++)->to);
    }
    map_.shift(slot, removal.to, removal.by);
  }
  dropped_[to_size(slot)] = removal.dropped;
  map_.erase(slot, removal.from, removal.to);
  if (map_.size(slot) == 0) close(slot);
}

std::vector<CellMove> CausalCells::plan_compact(int32_t budget) const {
  std::vector<CellMove> moves;
  const CellSet& free = map_.free_cells();
  int32_t to = free.next(0);
  int32_t from = free.last_missing(n_cells());
  while (std::cmp_less(moves.size(), budget) && to >= 0 && from > to) {
    if (map_.references(from) > 0) {  // only planned cells have no references
      moves.push_back({from, to});
      to = free.next(to + 1);
    }
    from = free.last_missing(from);
  }
  std::reverse(moves.begin(), moves.end());
  return moves;
}

}  // namespace gen::cache
