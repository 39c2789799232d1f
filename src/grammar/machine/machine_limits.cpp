// SPDX-License-Identifier: Apache-2.0
// See machine_limits.h.
#include "grammar/machine/machine_limits.h"

#include <algorithm>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>

namespace gen::grammar {
namespace {

constexpr uint64_t kWorkPerLimitedState = 32;  // in visited nodes

// For the states from `first` on: the minimum number of visits of counted states on a path to an
// end.
void find_fewest(Machines* table, StateId first, uint32_t n_states) {
  std::vector<std::vector<StateId>> back(n_states);
  std::deque<StateId> open;
  for (StateId state = first; state < first + n_states; ++state) {
    for (const ByteEdge& edge : table->bytes(state)) back[edge.target - first].push_back(state);
    for (const CallEdge& edge : table->calls(state)) back[edge.target - first].push_back(state);
    if (!table->states[state].final) continue;
    table->fewest[state] = 0;
    open.push_back(state);
  }
  while (!open.empty()) {  // states that count nothing first
    const StateId state = open.front();
    open.pop_front();
    const bool counts = table->states[state].limit == Limit::kCounted;
    const uint32_t length = table->fewest[state] + (counts ? 1 : 0);
    for (const StateId from : back[state - first]) {
      if (length >= table->fewest[from]) continue;
      table->fewest[from] = length;
      if (counts) {
        open.push_back(from);
      } else {
        open.push_front(from);
      }
    }
  }
}

// Inside an escape only some characters remain possible, and the path with the fewest counted
// states may not be the shortest. At counted states it is, so only the states before the next
// counted one are examined; these have no cycles.
class MixedWays {
 public:
  explicit MixedWays(Machines* table) : table_(*table) {}

  void find(StateId first, uint32_t n_states) {
    for (StateId state = first; state < first + n_states; ++state) {
      if (table_.states[state].limit == Limit::kLimited) (void)from(state);
    }
    for (const auto& [state, paths] : known_) {
      if (paths.size() > 1) table_.mixed.emplace(state, paths);
    }
    known_.clear();
  }

 private:
  using LimitedPaths = std::vector<Machines::LimitedPath>;

  const LimitedPaths& from(StateId state) {
    const auto known = known_.find(state);
    if (known != known_.end()) return known->second;
    LimitedPaths all;
    if (table_.states[state].final) all.push_back({0, 0});
    for (const ByteEdge& edge : table_.bytes(state)) add(edge.target, 1, &all);
    for (const CallEdge& edge : table_.calls(state)) {
      add(edge.target, table_.shortest(edge.machine), &all);
    }
    std::sort(all.begin(), all.end());
    LimitedPaths kept;
    for (const Machines::LimitedPath& path : all) {
      if (kept.empty() || path.bytes < kept.back().bytes) kept.push_back(path);
    }
    return known_[state] = std::move(kept);
  }

  void add(StateId target, uint32_t bytes, LimitedPaths* all) {
    if (table_.fewest[target] == kFar) return;
    if (table_.states[target].limit == Limit::kCounted) {
      all->push_back({table_.fewest[target] + 1, table_.states[target].shortest + bytes});
      return;
    }
    for (const Machines::LimitedPath& path : from(target)) {
      all->push_back({path.counted, path.bytes + bytes});
    }
  }

  Machines& table_;
  std::unordered_map<StateId, LimitedPaths> known_;
};

}  // namespace

void find_limits(const std::vector<Automaton>& automata, Machines* table, Building* building) {
  const auto states_of = [&](uint32_t machine) {
    return std::span(table->states).subspan(table->starts[machine], automata[machine].nodes.size());
  };
  std::vector<uint32_t> open;
  for (Loop& loop : table->loops) {
    if (!loop.limited) continue;
    const uint32_t machine = loop.machine;
    const StateId first = table->starts[machine];
    const auto n_states = static_cast<uint32_t>(automata[machine].nodes.size());
    if (table->states[first].limit == Limit::kNone) {
      if (!goes_on(building, kWorkPerLimitedState * n_states)) return;
      if (table->fewest.empty()) table->fewest.resize(table->states.size(), kFar);
      for (uint32_t k = 0; k < n_states; ++k) {
        const bool counts = automata[machine].nodes[k].counted;
        table->states[first + k].limit = counts ? Limit::kCounted : Limit::kLimited;
      }
      find_fewest(table, first, n_states);
      MixedWays(table).find(first, n_states);
      open.push_back(machine);
    }
    for (StateId state = first; state < first + n_states; ++state) {
      const uint32_t fewest = table->fewest[state];
      if (fewest != kFar) loop.farthest = std::max(loop.farthest, fewest);
    }
  }
  while (!open.empty()) {
    const uint32_t machine = open.back();
    open.pop_back();
    const StateId first = table->starts[machine];
    const StateId behind = first + static_cast<uint32_t>(automata[machine].nodes.size());
    for (uint32_t i = table->states[first].calls; i < table->states[behind].calls; ++i) {
      const uint32_t called = table->call_edges[i].machine;
      const std::span<State> inside = states_of(called);
      if (inside[0].limit != Limit::kNone) continue;
      for (State& state : inside) state.limit = Limit::kInside;
      open.push_back(called);
    }
  }
}

}  // namespace gen::grammar
