// SPDX-License-Identifier: Apache-2.0
// Automata with one way for each byte, see dfa.h.
#include "grammar/dfa.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "grammar/hash.h"
#include "grammar/hash_index.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

void add_edge(EdgeList* edges, uint8_t low, uint8_t high, uint32_t target) {
  if (!edges->empty() && edges->back().target == target && edges->back().high + 1 == low) {
    edges->back().high = high;
  } else {
    edges->push_back({low, high, target});
  }
}

// Blocks of states that are alike as far as is known. A state whose edges lead to a block that was
// divided is looked at again; the larger part of a block keeps its number, so that a state moves,
// and those that lead to it are looked at, log n times at most.
class Blocks {
 public:
  explicit Blocks(const Dfa& dfa) : dfa_(dfa), block_(dfa.states.size()) {
    const auto count = static_cast<uint32_t>(dfa.states.size());
    into_begin_.assign(count + 1, 0);
    for (const Dfa::State& state : dfa.states) {
      for (const ByteEdge& edge : state.edges) ++into_begin_[edge.target + 1];
    }
    for (uint32_t s = 0; s < count; ++s) into_begin_[s + 1] += into_begin_[s];
    into_.resize(into_begin_[count]);
    std::vector<uint32_t> next(into_begin_.begin(), into_begin_.end() - 1);
    for (uint32_t s = 0; s < count; ++s) {
      for (const ByteEdge& edge : dfa.states[s].edges) into_[next[edge.target]++] = s;
    }
    waits_.assign(count, false);
    members_.resize(1);
    members_[0].resize(count);
    std::iota(members_[0].begin(), members_[0].end(), 0);
    place_.resize(count);
    std::iota(place_.begin(), place_.end(), 0);
    for (uint32_t s = 0; s < count; ++s) wait(s);
    while (!open_.empty()) {
      const uint32_t block = open_.back();
      open_.pop_back();
      divide(block);
    }
  }

  [[nodiscard]] uint32_t of(uint32_t state) const { return block_[state]; }
  [[nodiscard]] size_t count() const { return members_.size(); }

 private:
  struct Looked {
    uint64_t hash;
    uint32_t state;
  };

  void wait(uint32_t state) {
    if (waits_[state]) return;
    waits_[state] = true;
    const uint32_t block = block_[state];
    if (waiting_.size() <= block) waiting_.resize(block + size_t{1});
    if (waiting_[block].empty()) open_.push_back(block);
    waiting_[block].push_back(state);
  }

  // Edges of a state with blocks for targets; neighbours that lead to one block are one edge.
  void look(uint32_t state, EdgeList* out) const {
    out->shrink(0);
    for (ByteEdge edge : dfa_.states[state].edges) {
      edge.target = block_[edge.target];
      add_edge(out, edge.low, edge.high, edge.target);
    }
  }

  [[nodiscard]] uint64_t hash_of(uint32_t state) {
    look(state, &edges_);
    uint64_t hash = dfa_.states[state].final ? 1 : 0;
    for (const ByteEdge& edge : edges_) {
      hash = mix(hash,
                 static_cast<uint64_t>(edge.target) << 16 | uint64_t{edge.low} << 8U | edge.high);
    }
    return hash;
  }

  [[nodiscard]] bool alike(uint32_t a, uint32_t b) {
    if (dfa_.states[a].final != dfa_.states[b].final) return false;
    look(a, &edges_);
    look(b, &other_edges_);
    return std::equal(edges_.begin(), edges_.end(), other_edges_.begin(), other_edges_.end());
  }

  // Of the members of a block those that wait may differ from the others, which are alike.
  void divide(uint32_t block) {
    std::vector<uint32_t> waiting;
    waiting.swap(waiting_[block]);
    looked_.clear();
    for (const uint32_t state : waiting) {
      waits_[state] = false;
      looked_.push_back({hash_of(state), state});
    }
    if (members_[block].size() == 1) return;
    std::sort(looked_.begin(), looked_.end(), [](const Looked& a, const Looked& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.state < b.state;
    });
    // Parts: stretches of `looked_`, and those that did not wait.
    const uint32_t still = other_than(block, waiting);
    struct Part {
      size_t begin;
      size_t end;
    };
    std::vector<Part> parts;
    for (size_t i = 0; i < looked_.size(); ++i) {
      const bool joins = !parts.empty() && looked_[i].hash == looked_[i - 1].hash &&
                         alike(looked_[i].state, looked_[i - 1].state);
      if (joins) {
        ++parts.back().end;
      } else {
        parts.push_back({i, i + 1});
      }
    }
    size_t keeps = parts.size();  // those that did not wait
    size_t most = members_[block].size() - looked_.size();
    if (still != kNone) {
      for (size_t p = 0; p < parts.size(); ++p) {
        if (!alike(looked_[parts[p].begin].state, still)) continue;
        most += parts[p].end - parts[p].begin;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(p));
        keeps = parts.size();
        break;
      }
    }
    const bool with_still = still != kNone;
    for (size_t p = 0; p < parts.size(); ++p) {
      if (parts[p].end - parts[p].begin <= most) continue;
      most = parts[p].end - parts[p].begin;
      keeps = p;
    }
    if (parts.size() + (with_still ? 1 : 0) < 2) return;
    moved_.clear();
    for (size_t p = 0; p < parts.size(); ++p) {
      if (p == keeps) continue;
      const uint32_t made = new_block();
      for (size_t i = parts[p].begin; i < parts[p].end; ++i) move(looked_[i].state, made);
    }
    if (keeps != parts.size() && with_still) {
      // The rest moves, and what keeps the block's number stays.
      const uint32_t made = new_block();
      std::vector<uint32_t> rest;
      for (const uint32_t state : members_[block]) rest.push_back(state);
      for (size_t i = parts[keeps].begin; i < parts[keeps].end; ++i)
        waits_[looked_[i].state] = true;
      for (const uint32_t state : rest) {
        if (!waits_[state]) move(state, made);
      }
      for (size_t i = parts[keeps].begin; i < parts[keeps].end; ++i)
        waits_[looked_[i].state] = false;
    }
    for (const uint32_t state : moved_) {
      for (uint32_t i = into_begin_[state]; i < into_begin_[state + 1]; ++i) wait(into_[i]);
    }
  }

  // A member that did not wait.
  uint32_t other_than(uint32_t block, const std::vector<uint32_t>& waiting) {
    if (waiting.size() == members_[block].size()) return kNone;
    for (const uint32_t state : waiting) waits_[state] = true;
    uint32_t found = kNone;
    for (const uint32_t state : members_[block]) {
      if (!waits_[state]) {
        found = state;
        break;
      }
    }
    for (const uint32_t state : waiting) waits_[state] = false;
    return found;
  }

  uint32_t new_block() {
    members_.emplace_back();
    return static_cast<uint32_t>(members_.size() - 1);
  }

  void move(uint32_t state, uint32_t to) {
    auto& from = members_[block_[state]];
    const uint32_t last = from.back();
    from[place_[state]] = last;
    place_[last] = place_[state];
    from.pop_back();
    place_[state] = static_cast<uint32_t>(members_[to].size());
    members_[to].push_back(state);
    block_[state] = to;
    moved_.push_back(state);
  }

  const Dfa& dfa_;
  std::vector<uint32_t> into_begin_;
  std::vector<uint32_t> into_;  // sources of edges, by target
  std::vector<uint32_t> block_;
  std::vector<uint32_t> place_;                 // in its block
  std::vector<std::vector<uint32_t>> members_;  // by block
  std::vector<std::vector<uint32_t>> waiting_;  // by block
  std::vector<bool> waits_;
  std::vector<uint32_t> open_;  // blocks with members that wait
  std::vector<Looked> looked_;
  std::vector<uint32_t> moved_;
  EdgeList edges_;
  EdgeList other_edges_;
};

}  // namespace

// States that a start leads to and that lead to an end, the start first.
Dfa trim(Dfa dfa) {
  const size_t count = dfa.states.size();
  std::vector<uint32_t> begin(count + 1, 0);  // of those that lead to a state
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
  std::vector<uint32_t> number(count, kNone);
  std::vector<uint32_t> reached = {0};
  number[0] = 0;
  bool in_order = true;  // and all of them are there
  for (size_t i = 0; i < reached.size(); ++i) {
    in_order = in_order && reached[i] == i;
    for (const ByteEdge& edge : dfa.states[reached[i]].edges) {
      if (!leads[edge.target] || number[edge.target] != kNone) continue;
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

Dfa minimise(Dfa dfa) {
  const Dfa trimmed = trim(std::move(dfa));
  if (trimmed.empty()) return trimmed;
  const Blocks blocks(trimmed);
  Dfa made;
  std::vector<uint32_t> number(blocks.count(), kNone);
  std::vector<uint32_t> member = {0};  // of each new state
  number[blocks.of(0)] = 0;
  for (size_t i = 0; i < member.size(); ++i) {
    const Dfa::State& old = trimmed.states[member[i]];
    Dfa::State state;
    state.final = old.final;
    for (const ByteEdge& edge : old.edges) {
      uint32_t& target = number[blocks.of(edge.target)];
      if (target == kNone) {
        target = static_cast<uint32_t>(member.size());
        member.push_back(edge.target);
      }
      add_edge(&state.edges, edge.low, edge.high, target);
    }
    made.states.push_back(std::move(state));
  }
  return made;
}

Result<Dfa> combine(const Dfa& a, const Dfa& b, Both how, const DfaFuel& fuel) {
  const auto final = [&](uint32_t s, uint32_t t) {
    const bool of_a = s != kNone && a.states[s].final;
    const bool of_b = t != kNone && b.states[t].final;
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
  // Whether nothing can be a member any more once one has no way.
  const bool needs_a = how == Both::kAnd || how == Both::kNot;
  const bool needs_b = how == Both::kAnd;
  Dfa made;
  HashIndex known;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const auto number = [&](uint32_t s, uint32_t t) {
    const uint64_t hash = mix(mix(0, s), t);
    const auto made_of_both = [&](uint32_t i) { return pairs[i] == std::pair(s, t); };
    const uint32_t old = known.find(hash, made_of_both);
    if (old != HashIndex::kNone) return old;
    known.add(hash, static_cast<uint32_t>(pairs.size()));
    pairs.emplace_back(s, t);
    return static_cast<uint32_t>(pairs.size() - 1);
  };
  number(a.empty() ? kNone : 0, b.empty() ? kNone : 0);
  uint64_t work = fuel.spent != nullptr ? *fuel.spent : 0;
  const EdgeList kNoEdges;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [s, t] = pairs[i];
    Dfa::State state;
    state.final = final(s, t);
    const auto& left = s == kNone ? kNoEdges : a.states[s].edges;
    const auto& right = t == kNone ? kNoEdges : b.states[t].edges;
    size_t l = 0;
    size_t r = 0;
    for (uint32_t byte = 0; byte < 256;) {
      while (l < left.size() && left[l].high < byte) ++l;
      while (r < right.size() && right[r].high < byte) ++r;
      uint32_t next = 256;
      const auto look = [&](const EdgeList& edges, size_t at) {
        if (at >= edges.size()) return kNone;
        if (edges[at].low > byte) {
          next = std::min<uint32_t>(next, edges[at].low);
          return kNone;
        }
        next = std::min<uint32_t>(next, edges[at].high + 1U);
        return edges[at].target;
      };
      const uint32_t to_a = look(left, l);
      const uint32_t to_b = look(right, r);
      const bool none = (to_a == kNone && (needs_a || to_b == kNone)) || (to_b == kNone && needs_b);
      if (!none) {
        add_edge(&state.edges, static_cast<uint8_t>(byte), static_cast<uint8_t>(next - 1),
                 number(to_a, to_b));
      }
      byte = next;
      ++work;
    }
    made.states.push_back(std::move(state));
    if (pairs.size() > fuel.states) {
      return error(Code::kGrammar, "an automaton of more than %zu states", fuel.states);
    }
    if (work > fuel.work) {
      return error(Code::kGrammar, "an automaton of more work than the limit of %llu",
                   static_cast<unsigned long long>(fuel.work));
    }
  }
  if (fuel.spent != nullptr) *fuel.spent = work;
  // What has not grown is seldom much smaller with like states made one.
  const bool grown = made.states.size() > a.states.size() + b.states.size();
  return grown ? minimise(std::move(made)) : trim(std::move(made));
}

Result<Dfa> unite(std::vector<Dfa> all, const DfaFuel& fuel) {
  if (all.empty()) return Dfa();
  DfaFuel more = fuel;
  more.states *= 4;  // before like states are made one
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
    for (const auto& [target, set] : sets) diagram.ways.push_back({s, target, to.bytes(set)});
  }
  return to.diagram(std::move(diagram));
}

}  // namespace gen::grammar
