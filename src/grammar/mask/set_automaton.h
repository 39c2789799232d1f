// SPDX-License-Identifier: Apache-2.0
// SetAutomaton: the recogniser made an automaton step by step, as far as walks over tokens need it.
// A state is a set of items; what a byte leads to is found out once. All walks over one grammar
// share the states, for what is behind their lists is always the same: the end, or what is not
// known.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/machine/machines.h"
#include "grammar/machine/recogniser.h"

namespace gen::grammar {

/// Threads: not synchronised.
class SetAutomaton {
 public:
  using Id = uint16_t;
  static constexpr Id kNone = 0;  // where no text leads
  static constexpr size_t kMost = UINT16_MAX;

  struct State {
    uint64_t loops = 0;  // kinds of bytes (byte_kind.h) that all lead back to it
    uint64_t reads = 0;  // kinds of which some lead on
    uint64_t least = 0;  // fewest bytes to the end of all or to what is not known
    uint32_t first = 0;  // of its items
    uint32_t count = 0;
    bool outside = false;   // what is not known begins here
    bool expanded = false;  // loops, reads, next, onward and row() are known
    Id next = kNone;        // where letters lead
    uint64_t onward = 0;    // kinds of bytes that all lead there
    // leads_on() is false for texts of some of these kinds that are longer.
    uint64_t stops = 0;
    uint32_t stops_behind = 0;
  };

  /// Both outlive it; `lists` only grow between two calls of clear().
  SetAutomaton(const Machines& machines, ReturnLists& lists, size_t max_states)
      : machines_(machines), lists_(lists), max_states_(std::min(max_states, kMost)) {
    clear();
  }
  void clear();

  /// The state of these items; no value once there are too many.
  std::optional<Id> state_of(std::span<const Item> items, bool ended, bool outside);
  /// Makes sure that row() is known. False if that takes too many states, more than `max_items` in
  /// one of them, or step.work() above `max_work`.
  [[nodiscard]] bool expand(Step& step, Id id, size_t max_items, uint64_t max_work);

  /// Whether all texts of bytes of these kinds that are at most so long lead on from there, each
  /// byte of them to the same place, and none to what is not known; then `*worst` becomes `least`
  /// of those places, if that is more. False, too, if to find out takes too much, as in expand().
  [[nodiscard]] bool leads_on(Step& step, Id id, uint64_t kinds, uint32_t length, size_t max_items,
                              uint64_t max_work, uint64_t* worst);

  [[nodiscard]] const State& at(Id id) const noexcept { return states_[id]; }
  [[nodiscard]] const std::array<Id, 256>& row(Id id) const noexcept { return *rows_[id]; }
  /// One item that calls nothing.
  [[nodiscard]] bool is_simple(Id id) const noexcept {
    return states_[id].count == 1 && machines_.states[items_[states_[id].first].state].simple;
  }
  [[nodiscard]] bool full() const noexcept { return states_.size() >= max_states_; }
  /// Of all states.
  [[nodiscard]] uint64_t greatest_least() const noexcept { return greatest_least_; }
  [[nodiscard]] const Machines& machines() const noexcept { return machines_; }

 private:
  using Row = std::array<Id, 256>;
  std::optional<Id> behind(Step& step, const State& from, uint8_t byte, size_t max_items);

  const Machines& machines_;
  ReturnLists& lists_;
  const size_t max_states_;
  std::vector<State> states_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<Item> items_;
  std::unordered_multimap<uint64_t, Id> known_;
  uint64_t greatest_least_ = 0;
  std::vector<Item> sorted_;
  std::vector<std::pair<std::vector<Item>, Id>> made_;  // of one expansion, by seeds
};

}  // namespace gen::grammar
