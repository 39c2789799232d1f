// SPDX-License-Identifier: Apache-2.0
// SetAutomaton: the recogniser as a lazily built deterministic automaton, for walks over tokens. A
// state is a set of items; its transitions are computed once. All walks over one grammar share the
// states, because the bottom of their lists is always the same: the end of the text, or an unknown
// continuation.
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
  static constexpr Id kNone = 0;  // no text leads anywhere
  static constexpr size_t kMost = UINT16_MAX;

  struct State {
    uint64_t loops = 0;  // kinds of bytes (byte_kind.h) that all lead back to this state
    uint64_t reads = 0;  // kinds of which some bytes can be read
    uint64_t least = 0;  // minimum bytes to the end of the text or to an unknown continuation
    uint32_t first = 0;  // of its items
    uint32_t count = 0;
    bool outside = false;   // an unknown continuation begins here
    bool expanded = false;  // loops, reads, next, onward and row() are known
    Id next = kNone;        // where letters lead
    uint64_t onward = 0;    // kinds of bytes that all lead to `next`
    // leads_on() is false for longer texts of some of these kinds.
    uint64_t stops = 0;
    uint32_t stops_behind = 0;
  };

  /// Both outlive it; `lists` only grow between two calls of clear().
  SetAutomaton(const Machines& machines, ReturnLists& lists, size_t max_states)
      : machines_(machines), lists_(lists), max_states_(std::min(max_states, kMost)) {
    clear();
  }
  void clear();

  /// The state for these items; no value if there are too many states.
  std::optional<Id> state_of(std::span<const Item> items, bool ended, bool outside);
  /// Computes row(). False if that takes too many states, more than `max_items` in one of them, or
  /// step.work() above `max_work`.
  [[nodiscard]] bool expand(Step& step, Id id, size_t max_items, uint64_t max_work);

  /// Whether all texts of at most `length` bytes of these kinds can be read from there, each byte
  /// leading to the same state, and none to an unknown continuation; `*worst` is then raised to
  /// `least` of these states. Also false if the check takes too much, as in expand().
  [[nodiscard]] bool leads_on(Step& step, Id id, uint64_t kinds, uint32_t length, size_t max_items,
                              uint64_t max_work, uint64_t* worst);

  [[nodiscard]] const State& at(Id id) const noexcept { return states_[id]; }
  [[nodiscard]] const std::array<Id, 256>& row(Id id) const noexcept { return *rows_[id]; }
  /// One item that calls nothing.
  [[nodiscard]] bool is_simple(Id id) const noexcept {
    return states_[id].count == 1 && machines_.states[items_[states_[id].first].state].simple;
  }
  [[nodiscard]] bool full() const noexcept { return states_.size() >= max_states_; }
  /// Over all states.
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
