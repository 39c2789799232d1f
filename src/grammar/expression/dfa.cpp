// SPDX-License-Identifier: Apache-2.0
// Deterministic automata, see dfa.h.
#include "grammar/expression/dfa.h"

#include <algorithm>
#include <utility>

#include "grammar/base/hash.h"
#include "grammar/base/hash_index.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;
constexpr size_t kMaxInTable = size_t{1} << 18U;  // pairs of states
constexpr uint64_t kWorkPerState = 16;            // to merge equivalent states

}  // namespace

Status DfaWork::status() const {
  if (fuel_.building != nullptr && fuel_.building->stopped()) return fuel_.building->status();
  return error(Code::kGrammar, "an automaton of more work than the limit of %llu",
               static_cast<unsigned long long>(fuel_.work));
}

// States that are reachable and lead to an end, the start first.
Dfa trim(Dfa dfa) {
  const size_t count = dfa.states.size();
  std::vector<uint32_t> begin(count + 1, 0);  // number of states that lead to a state
  for (const Dfa::State& state : dfa.states) {
    for (const ByteEdge& edge : state.edges) ++begin[edge.target + size_t{1}];
  }
  for (size_t s = 0; s < count; ++s) begin[s + 1] += begin[s];
  std::vector<uint32_t> back(begin[count]);
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  std::vector<uint32_t> open;
  std::vector<bool> leads(count, false);
  for (uint32_t s = 0; s < count; ++s) {
    for (const ByteEdge& edge : dfa.states[s].edges) back[next[edge.target]++] = s;
    if (dfa.states[s].final) {
      leads[s] = true;
      open.push_back(s);
    }
  }
  while (!open.empty()) {
    const uint32_t state = open.back();
    open.pop_back();
    for (uint32_t i = begin[state]; i < begin[state + 1]; ++i) {
      if (!leads[back[i]]) open.push_back(back[i]);
      leads[back[i]] = true;
    }
  }
  Dfa made;
  if (count == 0 || !leads[0]) return made;
  std::vector<uint32_t> number(count, kNowhere);
  std::vector<uint32_t> reached = {0};
  number[0] = 0;
  bool in_order = true;  // and all of them are present
  for (size_t i = 0; i < reached.size(); ++i) {
    in_order = in_order && reached[i] == i;
    for (const ByteEdge& edge : dfa.states[reached[i]].edges) {
      if (!leads[edge.target] || number[edge.target] != kNowhere) continue;
      number[edge.target] = static_cast<uint32_t>(reached.size());
      reached.push_back(edge.target);
    }
  }
  if (in_order && reached.size() == count) return dfa;
  for (const uint32_t old : reached) {
    Dfa::State& state = made.states.emplace_back(std::move(dfa.states[old]));
    const auto* const kept =
        std::remove_if(state.edges.begin(), state.edges.end(),
                       [&](const ByteEdge& edge) { return !leads[edge.target]; });
    state.edges.shrink(static_cast<size_t>(kept - state.edges.begin()));
    for (ByteEdge& edge : state.edges) edge.target = number[edge.target];
  }
  return made;
}

Result<Dfa> combine(const Dfa& a, const Dfa& b, Both how, const DfaFuel& fuel) {
  const auto final = [&](uint32_t s, uint32_t t) {
    const bool of_a = s != kNowhere && a.states[s].final;
    const bool of_b = t != kNowhere && b.states[t].final;
    switch (how) {
      case Both::kAnd:
        return of_a && of_b;
      case Both::kNot:
        return of_a && !of_b;
      case Both::kOr:
        return of_a || of_b;
      default:
        return of_a != of_b;
    }
  };
  // Whether no text can be a member once `a` has no transition.
  const bool needs_a = how == Both::kAnd || how == Both::kNot;
  const bool needs_b = how == Both::kAnd;
  Dfa made;
  HashIndex known;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  // A direct table of pairs, if they are few.
  const size_t width = b.states.size() + 1;
  const bool few = (a.states.size() + 1) * width <= kMaxInTable;
  std::vector<uint32_t> table(few ? (a.states.size() + 1) * width : 0, kNowhere);
  const auto number = [&](uint32_t s, uint32_t t) {
    if (few) {
      const size_t row = s == kNowhere ? a.states.size() : s;
      uint32_t& one = table[row * width + (t == kNowhere ? b.states.size() : t)];
      if (one == kNowhere) {
        one = static_cast<uint32_t>(pairs.size());
        pairs.emplace_back(s, t);
      }
      return one;
    }
    const uint64_t hash = mix(mix(0, s), t);
    const auto made_of_both = [&](uint32_t i) { return pairs[i] == std::pair(s, t); };
    const uint32_t old = known.find(hash, made_of_both);
    if (old != HashIndex::kNone) return old;
    known.add(hash, static_cast<uint32_t>(pairs.size()));
    pairs.emplace_back(s, t);
    return static_cast<uint32_t>(pairs.size() - 1);
  };
  number(a.empty() ? kNowhere : 0, b.empty() ? kNowhere : 0);
  DfaWork work(fuel);
  const EdgeList kNoEdges{};
  EdgeList edges_here;  // kept for its memory
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [s, t] = pairs[i];
    edges_here.shrink(0);
    const auto& left = s == kNowhere ? kNoEdges : a.states[s].edges;
    const auto& right = t == kNowhere ? kNoEdges : b.states[t].edges;
    size_t l = 0;
    size_t r = 0;
    for (uint32_t byte = 0; byte < 256;) {
      while (l < left.size() && left[l].high < byte) ++l;
      while (r < right.size() && right[r].high < byte) ++r;
      uint32_t next = 256;
      const auto look = [&](const EdgeList& edges, size_t at) {
        if (at >= edges.size()) return kNowhere;
        if (edges[at].low > byte) {
          next = std::min<uint32_t>(next, edges[at].low);
          return kNowhere;
        }
        next = std::min<uint32_t>(next, edges[at].high + 1U);
        return edges[at].target;
      };
      const uint32_t to_a = look(left, l);
      const uint32_t to_b = look(right, r);
      const bool none =
          (to_a == kNowhere && (needs_a || to_b == kNowhere)) || (to_b == kNowhere && needs_b);
      if (!none) {
        edges_here.add(
            {static_cast<uint8_t>(byte), static_cast<uint8_t>(next - 1), number(to_a, to_b)});
      }
      byte = next;
      work += 1;
    }
    made.states.push_back({EdgeList(edges_here), final(s, t)});
    if (pairs.size() > fuel.states) {
      return error(Code::kGrammar, "an automaton of more than %zu states", fuel.states);
    }
    if (!goes_on(fuel.building, kWorkPerState) || work.is_over()) return work.status();
  }
  // A result that has not grown is seldom much smaller after minimisation.
  const bool grown = made.states.size() > a.states.size() + b.states.size();
  return grown ? minimise(std::move(made)) : trim(std::move(made));
}

Result<Dfa> unite(std::vector<Dfa> all, const DfaFuel& fuel) {
  if (all.empty()) return Dfa();
  DfaFuel more = fuel;
  more.states *= 4;  // before equivalent states are merged
  for (size_t apart = 1; apart < all.size(); apart *= 2) {
    for (size_t i = 0; i + apart < all.size(); i += 2 * apart) {
      GEN_ASSIGN(all[i], combine(all[i], all[i + apart], Both::kOr, more));
      all[i + apart] = Dfa();
      if (all[i].states.size() <= fuel.states) continue;
      return error(Code::kGrammar, "an automaton of more than %zu states", fuel.states);
    }
  }
  return std::move(all[0]);
}

ExprId expression_of(Expressions& to, const Dfa& dfa) {
  if (dfa.empty()) return Expressions::kNever;
  Diagram diagram;
  std::vector<std::pair<uint32_t, ByteSet>> sets;  // by target
  for (uint32_t s = 0; s < dfa.states.size(); ++s) {
    diagram.final.push_back(dfa.states[s].final);
    sets.clear();
    for (const ByteEdge& edge : dfa.states[s].edges) {
      auto place = std::find_if(sets.begin(), sets.end(),
                                [&](const auto& set) { return set.first == edge.target; });
      if (place == sets.end()) place = sets.insert(sets.end(), {edge.target, ByteSet()});
      place->second.add(ByteSet::range(edge.low, edge.high));
    }
    for (const auto& [target, set] : sets)
      diagram.transitions.push_back({s, target, to.bytes(set)});
  }
  return to.diagram(std::move(diagram));
}

}  // namespace gen::grammar
