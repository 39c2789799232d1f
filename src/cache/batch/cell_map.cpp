// SPDX-License-Identifier: Apache-2.0
// See cell_map.h.
#include "cache/batch/cell_map.h"

#include <algorithm>

#include "base/to_size.h"
#include "base/status.h"

namespace gen::cache {
namespace {

}  // namespace

CellMap::CellMap(int32_t cells, int32_t max_sequences)
    : free_(cells), references_(to_size(cells)), max_sequences_(max_sequences) {
  open_.reserve(to_size(max_sequences));
  lists_.resize(to_size(max_sequences));
  closed_slots_.reserve(to_size(max_sequences));
  for (int32_t slot = max_sequences - 1; slot >= 0; --slot) closed_slots_.push_back(slot);
}

int32_t CellMap::find(int32_t id) const noexcept {
  const auto found = std::lower_bound(open_.begin(), open_.end(), id,
                                      [](const Sequence& s, int32_t key) { return s.id < key; });
  return found != open_.end() && found->id == id ? found->slot : -1;
}

int32_t CellMap::next_slot(int32_t later) const noexcept {
  const size_t n = closed_slots_.size();
  return to_size(later) < n ? closed_slots_[n - 1 - to_size(later)] : -1;
}

int32_t CellMap::open(int32_t id) noexcept {
  GEN_ASSERT(!closed_slots_.empty() && find(id) < 0);
  const int32_t slot = closed_slots_.back();
  closed_slots_.pop_back();
  const auto place = std::lower_bound(open_.begin(), open_.end(), id,
                                      [](const Sequence& s, int32_t key) { return s.id < key; });
  open_.insert(place, Sequence{id, slot});
  return slot;
}

void CellMap::close(int32_t slot) noexcept {
  drop_planned(slot);
  erase(slot, 0, size(slot));
  open_.erase(std::find_if(open_.begin(), open_.end(),
                           [slot](const Sequence& s) { return s.slot == slot; }));
  closed_slots_.push_back(slot);
}

int32_t CellMap::lower_bound(int32_t slot, int32_t position) const noexcept {
  const auto list = positions(slot);
  return static_cast<int32_t>(std::lower_bound(list.begin(), list.end(), position) - list.begin());
}

void CellMap::reserve(int32_t slot, int32_t n) {
  List& list = lists_[to_size(slot)];
  const size_t wanted = list.cells.size() - list.head + to_size(n);
  if (list.head + wanted <= std::min(list.positions.capacity(), list.cells.capacity())) return;
  // Doubles the capacity, so that a list whose front is dropped moves only after as many steps.
  if (2 * wanted > std::min(list.positions.capacity(), list.cells.capacity())) {
    list.positions.reserve(list.head + 2 * wanted);
    list.cells.reserve(list.head + 2 * wanted);
  }
  const auto head = static_cast<std::ptrdiff_t>(list.head);
  list.positions.erase(list.positions.begin(), list.positions.begin() + head);
  list.cells.erase(list.cells.begin(), list.cells.begin() + head);
  list.head = 0;
}

void CellMap::add_reference(int32_t cell) noexcept {
  if (references_[to_size(cell)]++ == 0) free_.remove(cell);
}

void CellMap::drop_reference(int32_t cell) noexcept {
  GEN_ASSERT(references_[to_size(cell)] > 0);
  if (--references_[to_size(cell)] == 0) free_.add(cell);
}

void CellMap::insert(int32_t slot, int32_t position, int32_t cell) noexcept {
  List& list = lists_[to_size(slot)];
  GEN_ASSERT(planned(slot) == 0 && list.cells.size() < list.cells.capacity());
  const auto first = list.positions.begin() + static_cast<std::ptrdiff_t>(list.head);
  const auto place = std::upper_bound(first, list.positions.end(), position);
  list.cells.insert(list.cells.begin() + (place - list.positions.begin()), cell);
  list.positions.insert(place, position);
  add_reference(cell);
}

void CellMap::erase(int32_t slot, int32_t from, int32_t to) noexcept {
  if (from >= to) return;
  List& list = lists_[to_size(slot)];
  const auto begin = static_cast<std::ptrdiff_t>(list.head) + from;
  const auto end = static_cast<std::ptrdiff_t>(list.head) + to;
  for (auto i = begin; i < end; ++i) drop_reference(list.cells[static_cast<size_t>(i)]);
  if (from == 0) {
    list.head += to_size(to);
  } else {
    list.positions.erase(list.positions.begin() + begin, list.positions.begin() + end);
    list.cells.erase(list.cells.begin() + begin, list.cells.begin() + end);
  }
  if (list.head == list.cells.size()) {
    list.positions.clear();
    list.cells.clear();
    list.head = 0;
  }
}

void CellMap::shift(int32_t slot, int32_t from, int32_t by) noexcept {
  List& list = lists_[to_size(slot)];
  for (size_t i = list.head + to_size(from); i < list.positions.size(); ++i) list.positions[i] += by;
}

void CellMap::replace(int32_t slot, int32_t index, int32_t cell) noexcept {
  int32_t& own = lists_[to_size(slot)].cells[lists_[to_size(slot)].head + to_size(index)];
  add_reference(cell);
  drop_reference(own);
  own = cell;
}

void CellMap::plan(int32_t slot, int32_t cell) noexcept {
  List& list = lists_[to_size(slot)];
  GEN_ASSERT(free_.has(cell) && list.cells.size() < list.cells.capacity());
  free_.remove(cell);
  list.cells.push_back(cell);
}

void CellMap::commit_planned(int32_t slot, int32_t position) noexcept {
  List& list = lists_[to_size(slot)];
  while (list.positions.size() < list.cells.size()) {
    ++references_[to_size(list.cells[list.positions.size()])];
    list.positions.push_back(position++);
  }
}

void CellMap::drop_planned(int32_t slot) noexcept {
  List& list = lists_[to_size(slot)];
  while (list.cells.size() > list.positions.size()) {
    free_.add(list.cells.back());
    list.cells.pop_back();
  }
}

void CellMap::move(std::span<const CellMove> moves) noexcept {
  for (const Sequence& sequence : open_) {
    for (int32_t i = 0; i < size(sequence.slot); ++i) {
      const int32_t cell = cells(sequence.slot)[to_size(i)];
      const auto found =
          std::lower_bound(moves.begin(), moves.end(), cell,
                           [](const CellMove& move, int32_t from) { return move.from < from; });
      if (found != moves.end() && found->from == cell) replace(sequence.slot, i, found->to);
    }
  }
}

size_t CellMap::bytes() const noexcept {
  size_t bytes = free_.bytes() + references_.capacity() * sizeof(int32_t) +
                 open_.capacity() * sizeof(Sequence) + closed_slots_.capacity() * sizeof(int32_t) +
                 lists_.capacity() * sizeof(List);
  for (const List& list : lists_) {
    bytes += (list.positions.capacity() + list.cells.capacity()) * sizeof(int32_t);
  }
  return bytes;
}

}  // namespace gen::cache
