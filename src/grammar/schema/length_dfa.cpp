// SPDX-License-Identifier: Apache-2.0
// Strings of an automaton whose length is limited, see string_dfa.h: its states with a count of
// characters beside them. Where no way on can be too long or too short the count is dropped, so
// that only what may go on without end is copied for each count.
#include <algorithm>
#include <deque>
#include <utility>

#include "grammar/hash.h"
#include "grammar/hash_index.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kFree = UINT32_MAX;  // for a count: it no longer matters

// Characters are counted at their first bytes.
bool begins(const ByteEdge& edge) { return (edge.low & 0xC0U) != 0x80U; }

// Fewest and most characters from each state to an end; kUnbounded: no most.
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
  // A state all of whose ways are known has a most; states on rings are never reached.
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

}  // namespace

Result<Dfa> with_length(const Dfa& strings, Lengths size, const DfaFuel& fuel) {
  if (strings.empty()) return Dfa();
  const std::vector<Lengths> on = ways_on(strings);
  struct Pair {
    uint32_t state;
    uint32_t count;
  };
  std::vector<Pair> pairs;
  HashIndex known;
  // UINT32_MAX: nothing fits any more.
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
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs.size() > 4 * fuel.states) {
      return error(Code::kGrammar, "a length limit takes an automaton of more than %zu states",
                   4 * fuel.states);
    }
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
  // Ways of some lengths between the fewest and the most may be missing.
  return trim(std::move(made));
}

}  // namespace gen::grammar
