// SPDX-License-Identifier: Apache-2.0
// TrieWalk: reads all tokens of a vocabulary in parallel, from given items of the recogniser.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "grammar/base/byte_kind.h"
#include "grammar/machine/machines.h"
#include "grammar/machine/recogniser.h"
#include "grammar/mask/vocabulary.h"

namespace gen::grammar {

/// The recogniser's state at a trie node.
struct Behind {
  std::span<const Item> items;
  bool ended = false;    // the text may end there
  bool outside = false;  // reached kOutside
};

/// Minimum bytes from there to the end of the text; to the bottom, if that is outside.
inline uint64_t least_behind(const Machines& machines, const ReturnLists& lists,
                             const Behind& behind) {
  if (behind.ended || behind.outside) return 0;
  return shortest(machines, lists, behind.items);
}

/// Tables that are reused from walk to walk.
/// Threads: not synchronised.
class TrieWalk {
 public:
  /// Both outlive it.
  TrieWalk(const Machines& machines, const Vocabulary& vocabulary)
      : step(machines), machines_(machines), vocabulary_(vocabulary) {}

  /// Visits the trie nodes below `top` that can be read from `from`, in the order of the trie:
  /// visit(node, Behind, whole). `whole` means that all nodes below it lead to the same state; they
  /// are not visited themselves. Lists are added to `lists` and removed again. False if one node
  /// takes more than `max_items` or the walk takes step.work() above `max_work`.
  template <typename Visit>
  [[nodiscard]] bool run(ReturnLists& lists, uint32_t top, std::span<const Item> from,
                         size_t max_items, uint64_t max_work, Visit visit);

  /// Kinds of bytes (byte_kind.h) of which some can be read.
  [[nodiscard]] uint64_t reads(std::span<const Item> items) {
    uint64_t kinds = 0;
    for (const Item item : items) kinds |= row(item.state).reads;
    return kinds;
  }

  Step step;  // may be used between walks

 private:
  static constexpr StateId kDead = UINT32_MAX;         // in a row: no transition
  static constexpr StateId kSeveral = UINT32_MAX - 1;  // more than one
  static constexpr size_t kMaxRows = 4096;
  struct Row {
    std::array<StateId, 256> to;
    uint64_t loops = 0;  // kinds of bytes that all lead back to the state
    uint64_t reads = 0;  // kinds of which some bytes can be read
  };

  /// The recogniser's progress on the path to a trie node.
  struct Level {
    size_t first = 0;
    size_t count = 0;
    size_t frames = 0;
    // If it has a state, everything follows from this single item.
    Item seed = {kDead, 0};
    uint64_t loops = 0;  // kinds of bytes that only lead the seed back to itself
    uint64_t reads = 0;  // kinds of which some bytes can be read
    bool ended = false;
    bool outside = false;
  };

  // For a level that was just read, with its items.
  void find_loops(Level& level) {
    const Item* const begin = items_.data() + level.first;
    level.reads = reads({begin, level.count});
    if (level.seed.state == kDead) return;
    level.loops = row(level.seed.state).loops;
    for (size_t i = 0; i < level.count; ++i) {
      if (begin[i] != level.seed) level.loops &= ~row(begin[i].state).reads;
    }
  }

  const Row& row(StateId state) {
    if (row_of_.empty()) row_of_.resize(machines_.states.size(), nullptr);
    if (row_of_[state] != nullptr) return *row_of_[state];
    if (rows_.size() >= kMaxRows) {
      rows_.clear();
      std::fill(row_of_.begin(), row_of_.end(), nullptr);
    }
    auto made = std::make_unique<Row>();
    made->to.fill(kDead);
    for (const ByteEdge& edge : machines_.bytes(state)) {
      for (uint32_t byte = edge.low; byte <= edge.high; ++byte) {
        StateId& place = made->to[byte];
        place = place == kDead ? edge.target : kSeveral;
      }
    }
    uint64_t others = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (made->to[byte] != state) others |= uint64_t{1} << kByteKinds[byte];
      if (made->to[byte] != kDead) made->reads |= uint64_t{1} << kByteKinds[byte];
    }
    // Where something is counted, no state repeats.
    made->loops = machines_.states[state].limit < Limit::kLimited ? ~others : 0;
    const Row& kept = *rows_.emplace(state, std::move(made)).first->second;
    row_of_[state] = &kept;
    return kept;
  }

  const Machines& machines_;
  const Vocabulary& vocabulary_;
  std::unordered_map<StateId, std::unique_ptr<Row>> rows_;
  std::vector<const Row*> row_of_;
  std::vector<Item> items_;
  std::vector<Level> levels_;  // down to the current node
};

template <typename Visit>
bool TrieWalk::run(ReturnLists& lists, uint32_t top, std::span<const Item> from, size_t max_items,
                   uint64_t max_work, Visit visit) {
  const auto trie = vocabulary_.trie();
  const uint32_t base = trie[top].depth;
  if (levels_.size() < vocabulary_.longest() + 1) levels_.resize(vocabulary_.longest() + 1);
  items_.assign(from.begin(), from.end());
  const size_t frames = lists.size();
  levels_[0] = {0, from.size(), frames, {kDead, 0}, 0, 0, false, false};
  for (uint32_t i = top + 1; i < trie[top].skip;) {
    const Vocabulary::Node& node = trie[i];
    const size_t depth = node.depth - base;
    const Level& above = levels_[depth - 1];
    items_.resize(above.first + above.count);
    if (above.count == 1) {
      const Item item = items_[above.first];
      const StateId target = row(item.state).to[node.byte];
      if (target == kDead) {
        i = node.skip;
        continue;
      }
      if (target != kSeveral && machines_.states[target].simple &&
          machines_.states[target].limit < Limit::kLimited) {
        const Frame& frame = lists.at(item.list);
        const bool final = machines_.states[target].final;
        const bool bottom = frame.parent == kNoFrame && frame.next == kNoFrame && frame.loop == 0;
        // A machine's end needs no step if only the end of the text, or an unknown continuation,
        // follows.
        if (!final || (bottom && (frame.ret == kEnd || frame.ret == kOutside))) {
          if (!machines_.states[target].reads) {
            visit(i, Behind{{}, frame.ret == kEnd, frame.ret != kEnd}, false);
            i = node.skip;
            continue;
          }
          items_.push_back({target, item.list});
          levels_[depth] = {above.first + 1, 1, above.frames, {kDead, 0}, 0, 0, false, false};
          const Row& next = row(target);
          const bool ended = final && frame.ret == kEnd;
          const bool outside = final && !ended;
          const bool whole = !outside && (vocabulary_.kinds_below(i) & ~next.loops) == 0;
          visit(i, Behind{{&items_.back(), 1}, ended, outside}, whole);
          i = whole || (vocabulary_.kinds_next(i) & next.reads) == 0 ? node.skip : i + 1;
          continue;
        }
      }
    }
    // A seed that a byte only leads back to itself gives the same level again.
    if ((above.loops >> kByteKinds[node.byte] & 1) != 0) {
      levels_[depth] = above;
      const Level& level = levels_[depth];
      const bool whole = !level.outside && (vocabulary_.kinds_below(i) & ~level.loops) == 0;
      visit(i,
            Behind{std::span(items_).subspan(level.first, level.count), level.ended, level.outside},
            whole);
      i = whole || (vocabulary_.kinds_next(i) & level.reads) == 0 ? node.skip : i + 1;
      continue;
    }
    lists.shrink(above.frames);
    step.begin();
    step.read(lists, std::span(items_).subspan(above.first, above.count), node.byte);
    const Item seed = step.seeds().size() == 1 ? step.seeds()[0] : Item{kDead, 0};
    if (!step.finish(lists, max_items) || step.work() > max_work) {
      lists.shrink(frames);
      return false;
    }
    if (step.dead()) {
      i = node.skip;
      continue;
    }
    const auto read = step.items();
    visit(i, Behind{read, step.ended(), step.outside()}, false);
    Level& level = levels_[depth];
    level = {items_.size(), read.size(), lists.size(), seed, 0, 0, step.ended(), step.outside()};
    items_.insert(items_.end(), read.begin(), read.end());
    if (node.skip > i + 1) find_loops(level);
    i = read.empty() || (vocabulary_.kinds_next(i) & level.reads) == 0 ? node.skip : i + 1;
  }
  lists.shrink(frames);
  return true;
}

}  // namespace gen::grammar
