// SPDX-License-Identifier: Apache-2.0
// Strings of an automaton with a limited length, see string_dfa.h: its states combined with a count
// of characters. Where no continuation can be too long or too short the count is dropped, so that
// only cyclic states are copied for each count.
#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

#include "grammar/base/hash.h"
#include "grammar/base/hash_index.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kFree = UINT32_MAX;  // the count no longer matters
constexpr uint64_t kWorkPerPair = 32;   // in nodes visited

// Characters are counted at their first bytes.
bool begins(const ByteEdge& edge) { return (edge.low & 0xC0U) != 0x80U; }

// Minimum and maximum characters from each state to an end; kUnbounded: no maximum.
std::vector<Lengths> ways_on(const Dfa& dfa) {
  const size_t count = dfa.states.size();
  std::vector<std::vector<std::pair<uint32_t, bool>>> back(count);
  std::vector<uint32_t> out(count, 0);
  for (uint32_t s = 0; s < count; ++s) {
    for (const ByteEdge& edge : dfa.states[s].edges) {
      back[edge.target].emplace_back(s, begins(edge));
      ++out[s];
    }
  }
  std::vector<Lengths> made(count, Lengths{kUnbounded, kUnbounded});
  std::deque<uint32_t> open;
  for (uint32_t s = 0; s < count; ++s) {
    if (!dfa.states[s].final) continue;
    made[s].min = 0;
    open.push_back(s);
  }
  while (!open.empty()) {  // edges of no length first
    const uint32_t s = open.front();
    open.pop_front();
    for (const auto& [from, one] : back[s]) {
      const uint32_t length = made[s].min + (one ? 1 : 0);
      if (length >= made[from].min) continue;
      made[from].min = length;
      if (one) {
        open.push_back(from);
      } else {
        open.push_front(from);
      }
    }
  }
  // A state whose paths are all known has a maximum; states on cycles are never reached.
  std::vector<uint32_t> most(count, 0);
  for (uint32_t s = 0; s < count; ++s) {
    if (out[s] == 0) open.push_back(s);
  }
  while (!open.empty()) {
    const uint32_t s = open.front();
    open.pop_front();
    made[s].max = most[s];
    for (const auto& [from, one] : back[s]) {
      most[from] = std::max(most[from], most[s] + (one ? 1 : 0));
      if (--out[from] == 0) open.push_back(from);
    }
  }
  return made;
}

// Whether there are certainly more than `most` pairs of a state and a count of at most `longest`.
// If the states after one more character are the same ones, they stay the same for all further
// ones. Only states with unbounded continuations are counted, because their count never ceases to
// matter.
bool are_too_many(const Dfa& strings, const std::vector<Lengths>& on, uint32_t longest,
                  size_t most) {
  constexpr uint32_t kMaxLevels = 64;
  std::vector<uint32_t> now = {0};
  std::vector<uint32_t> before;
  std::vector<uint32_t> seen(strings.states.size(), kFree);  // the level at which it was last
  size_t sum = 0;
  for (uint32_t count = 0; count <= std::min(longest, kMaxLevels); ++count) {
    std::vector<uint32_t> next;
    for (const uint32_t state : now) seen[state] = count;
    for (size_t i = 0; i < now.size(); ++i) {
      for (const ByteEdge& edge : strings.states[now[i]].edges) {
        if (begins(edge)) {
          next.push_back(edge.target);
        } else if (seen[edge.target] != count) {
          seen[edge.target] = count;
          now.push_back(edge.target);
        }
      }
    }
    std::sort(now.begin(), now.end());
    uint32_t farthest = 0;
    const auto endless =
        static_cast<size_t>(std::count_if(now.begin(), now.end(), [&](uint32_t state) {
          if (on[state].max != kUnbounded || count + uint64_t{on[state].min} > longest)
            return false;
          farthest = std::max(farthest, on[state].min);
          return true;
        }));
    sum += endless;
    if (sum > most) return true;
    if (now == before) {
      const uint32_t further = longest - count;
      return further > farthest && sum + endless * size_t{further - farthest} > most;
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    before = std::exchange(now, std::move(next));
  }
  return false;
}

// From each state to an end: the minimum sum of byte costs and `weight` per character. Some
// characters need a backslash in JSON.
std::vector<uint64_t> least_costs(const Dfa& dfa, uint64_t weight) {
  const auto bytes_of = [](const ByteEdge& edge) -> uint64_t {
    uint64_t least = 6;
    for (uint32_t byte = edge.low; byte <= edge.high && least > 1; ++byte) {
      const bool letter =
          byte == '"' || byte == '\\' || (byte >= '\b' && byte <= '\r' && byte != '\v');
      least = std::min<uint64_t>(least, letter ? 2 : byte < ' ' ? 6 : 1);
    }
    return least;
  };
  using Open = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  std::vector<std::vector<std::pair<uint32_t, uint64_t>>> back(dfa.states.size());
  std::vector<uint64_t> least(dfa.states.size(), UINT64_MAX);
  for (uint32_t s = 0; s < dfa.states.size(); ++s) {
    for (const ByteEdge& edge : dfa.states[s].edges) {
      back[edge.target].emplace_back(s, bytes_of(edge) + (begins(edge) ? weight : 0));
    }
    if (!dfa.states[s].final) continue;
    least[s] = 0;
    open.emplace(0, s);
  }
  while (!open.empty()) {
    const auto [cost, state] = open.top();
    open.pop();
    if (least[state] != cost) continue;
    for (const auto& [from, more] : back[state]) {
      if (cost + more >= least[from]) continue;
      least[from] = cost + more;
      open.emplace(cost + more, from);
    }
  }
  return least;
}

}  // namespace

bool takes_many_states(const Dfa& strings, uint32_t longest, size_t most) {
  return !strings.empty() && are_too_many(strings, ways_on(strings), longest, most);
}

bool fewest_are_shortest(const Dfa& strings) {
  constexpr uint64_t kWeight = uint64_t{1} << 32U;  // more than any text has bytes
  const std::vector<uint64_t> bytes = least_costs(strings, 0);
  const std::vector<uint64_t> characters = least_costs(strings, kWeight);
  return std::equal(bytes.begin(), bytes.end(), characters.begin(),
                    [](uint64_t one, uint64_t other) { return one == other % kWeight; });
}

Result<Dfa> with_length(const Dfa& strings, Lengths size, const DfaFuel& fuel) {
  if (strings.empty()) return Dfa();
  const std::vector<Lengths> on = ways_on(strings);
  struct Pair {
    uint32_t state;
    uint32_t count;
  };
  std::vector<Pair> pairs;
  HashIndex known;
  // UINT32_MAX: no valid continuation.
  const auto number = [&](uint32_t state, uint32_t count) {
    if (count != kFree) {
      const bool long_enough = count + uint64_t{on[state].min} >= size.min;
      const bool short_enough =
          size.max == kUnbounded ||
          (on[state].max != kUnbounded && count + uint64_t{on[state].max} <= size.max);
      if (size.max != kUnbounded && count + uint64_t{on[state].min} > size.max) return UINT32_MAX;
      if (on[state].max != kUnbounded && count + uint64_t{on[state].max} < size.min) {
        return UINT32_MAX;
      }
      if (long_enough && short_enough) count = kFree;
      if (size.max == kUnbounded && count != kFree) count = std::min(count, size.min);
    }
    const uint64_t hash = mix(mix(0, state), count);
    const uint32_t old = known.find(hash, [&](uint32_t pair) {
      return pairs[pair].state == state && pairs[pair].count == count;
    });
    if (old != HashIndex::kNone) return old;
    known.add(hash, static_cast<uint32_t>(pairs.size()));
    pairs.push_back({state, count});
    return static_cast<uint32_t>(pairs.size() - 1);
  };
  Dfa made;
  if (number(0, 0) == UINT32_MAX) return made;
  const size_t most = 4 * fuel.states;
  const bool too_many = size.max != kUnbounded && are_too_many(strings, on, size.max, most);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (too_many || pairs.size() > most) {
      return error(Code::kGrammar, "a length limit takes an automaton of more than %zu states",
                   most);
    }
    if (!goes_on(fuel.building, kWorkPerPair)) return fuel.building->status();
    const Pair at = pairs[i];
    Dfa::State& state = made.states.emplace_back();
    state.final = strings.states[at.state].final &&
                  (at.count == kFree || (at.count >= size.min && at.count <= size.max));
    for (ByteEdge edge : strings.states[at.state].edges) {
      const uint32_t count = at.count == kFree ? kFree : at.count + (begins(edge) ? 1 : 0);
      edge.target = number(edge.target, count);
      if (edge.target != UINT32_MAX) state.edges.push_back(edge);
    }
  }
  // Some lengths between the minimum and the maximum may be impossible.
  return trim(std::move(made));
}

}  // namespace gen::grammar
