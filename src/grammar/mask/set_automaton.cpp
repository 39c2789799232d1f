// SPDX-License-Identifier: Apache-2.0
// Sets of items as states, see set_automaton.h.
#include "grammar/mask/set_automaton.h"

#include <algorithm>
#include <bitset>
#include <utility>

#include "grammar/base/byte_kind.h"
#include "grammar/base/hash.h"
#include "grammar/mask/trie_walk.h"

namespace gen::grammar {

void SetAutomaton::clear() {
  items_.clear();
  known_.clear();
  greatest_least_ = 0;
  if (rows_.empty()) {
    auto none = std::make_unique<Row>();
    none->fill(kNone);
    rows_.push_back(std::move(none));
  }
  if (states_.empty()) states_.emplace_back();
  states_[kNone].expanded = true;
  states_.resize(1);
  rows_.resize(1);
}

std::optional<SetAutomaton::Id> SetAutomaton::state_of(std::span<const Item> items, bool ended,
                                                       bool outside) {
  if (items.empty() && !ended && !outside) return kNone;
  sorted_.assign(items.begin(), items.end());
  if (sorted_.size() > 1) {
    std::sort(sorted_.begin(), sorted_.end(), [](Item a, Item b) {
      return a.state != b.state ? a.state < b.state : a.list < b.list;
    });
  }
  uint64_t hash = (ended ? 2U : 0U) | (outside ? 1U : 0U);
  for (const Item item : sorted_)
    hash = mix(hash, static_cast<uint64_t>(item.state) << 32 | item.list);
  const uint64_t least = least_behind(machines_, lists_, {sorted_, ended, outside});
  const auto [begin, end] = known_.equal_range(hash);
  for (auto place = begin; place != end; ++place) {
    const State& one = states_[place->second];
    // An end only affects `least`.
    if (one.outside == outside && one.least == least &&
        std::equal(sorted_.begin(), sorted_.end(), items_.begin() + one.first,
                   items_.begin() + one.first + one.count)) {
      return place->second;
    }
  }
  if (full()) return std::nullopt;
  State made;
  made.first = static_cast<uint32_t>(items_.size());
  made.count = static_cast<uint32_t>(sorted_.size());
  made.outside = outside;
  made.least = least;
  const auto id = static_cast<Id>(states_.size());
  items_.insert(items_.end(), sorted_.begin(), sorted_.end());
  if (rows_.size() <= id)
    rows_.emplace_back();  // first: if memory runs out for the state, the row
                           // stays unused
  states_.push_back(made);
  known_.emplace(hash, id);
  greatest_least_ = std::max(greatest_least_, least);
  return id;
}

std::optional<SetAutomaton::Id> SetAutomaton::behind(Step& step, const State& from, uint8_t byte,
                                                     size_t max_items) {
  step.begin();
  step.read(lists_, std::span(items_).subspan(from.first, from.count), byte);
  if (step.seeds().empty()) return kNone;
  for (const auto& [seeds, id] : made_) {
    if (std::equal(seeds.begin(), seeds.end(), step.seeds().begin(), step.seeds().end())) return id;
  }
  std::vector<Item> seeds(step.seeds().begin(), step.seeds().end());
  if (!step.finish(lists_, max_items)) return std::nullopt;
  const std::optional<Id> id = state_of(step.items(), step.ended(), step.outside());
  if (id.has_value()) made_.emplace_back(std::move(seeds), *id);
  return id;
}

bool SetAutomaton::expand(Step& step, Id id, size_t max_items, uint64_t max_work) {
  if (states_[id].expanded) return true;
  const State from = states_[id];
  auto row = std::make_unique<Row>();
  // Between two consecutive ones all bytes are equivalent.
  std::bitset<257> begins;
  begins.set(0);
  for (uint32_t i = from.first; i < from.first + from.count; ++i) {
    for (const ByteEdge& edge : machines_.bytes(items_[i].state)) {
      begins.set(edge.low);
      begins.set(edge.high + 1U);
    }
  }
  made_.clear();
  for (uint32_t byte = 0; byte < 256;) {
    uint32_t end = byte + 1;
    while (end < 256 && !begins.test(end)) ++end;
    const std::optional<Id> to = behind(step, from, static_cast<uint8_t>(byte), max_items);
    if (!to.has_value() || step.work() > max_work) return false;
    for (; byte < end; ++byte) (*row)[byte] = *to;
  }
  State& state = states_[id];
  state.next = (*row)['n'];
  uint64_t others = 0;
  uint64_t elsewhere = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint64_t kind = uint64_t{1} << kByteKinds[byte];
    if ((*row)[byte] != id) others |= kind;
    if ((*row)[byte] != state.next) elsewhere |= kind;
    if ((*row)[byte] != kNone) state.reads |= kind;
  }
  state.loops = ~others;
  if (state.next != kNone) state.onward = ~elsewhere;
  state.expanded = true;
  rows_[id] = std::move(row);
  return true;
}

bool SetAutomaton::leads_on(Step& step, Id id, uint64_t kinds, uint32_t length, size_t max_items,
                            uint64_t max_work, uint64_t* worst) {
  if ((states_[id].stops & kinds) != 0 && length > states_[id].stops_behind) return false;
  uint64_t least = 0;
  Id at = id;
  for (uint32_t i = 0; i < length; ++i) {
    uint64_t stops = ~uint64_t{0};
    if (expand(step, at, max_items, max_work)) {
      const State& state = states_[at];
      stops = states_[state.next].outside ? ~uint64_t{0} : ~state.onward;
      if ((kinds & stops) == 0) at = state.next;
    }
    if ((kinds & stops) != 0) {
      states_[id].stops = stops;
      states_[id].stops_behind = i;
      return false;
    }
    least = std::max(least, states_[at].least);
  }
  *worst = std::max(*worst, least);
  return true;
}

}  // namespace gen::grammar
