// SPDX-License-Identifier: Apache-2.0
// Automata with one way for each byte, see dfa.h.
#include "grammar/dfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace gen::grammar {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// States that a start leads to and that lead to an end, the start first.
Dfa trim(const Dfa& dfa) {
  const size_t count = dfa.states.size();
  std::vector<std::vector<uint32_t>> back(count);
  std::vector<uint32_t> open;
  std::vector<bool> leads(count, false);
  for (uint32_t s = 0; s < count; ++s) {
    for (const ByteEdge& edge : dfa.states[s].edges) back[edge.target].push_back(s);
    if (dfa.states[s].final) {
      leads[s] = true;
      open.push_back(s);
    }
  }
  while (!open.empty()) {
    const uint32_t state = open.back();
    open.pop_back();
    for (const uint32_t from : back[state]) {
      if (!leads[from]) open.push_back(from);
      leads[from] = true;
    }
  }
  Dfa made;
  if (count == 0 || !leads[0]) return made;
  std::vector<uint32_t> number(count, kNone);
  std::vector<uint32_t> reached = {0};
  number[0] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    Dfa::State state;
    state.final = dfa.states[reached[i]].final;
    for (ByteEdge edge : dfa.states[reached[i]].edges) {
      if (!leads[edge.target]) continue;
      if (number[edge.target] == kNone) {
        number[edge.target] = static_cast<uint32_t>(reached.size());
        reached.push_back(edge.target);
      }
      edge.target = number[edge.target];
      state.edges.push_back(edge);
    }
    made.states.push_back(std::move(state));
  }
  return made;
}

// Bytes that no state tells apart, one class each.
std::vector<uint8_t> byte_classes(const Dfa& dfa, size_t* count) {
  std::array<bool, 257> begins{};
  for (const Dfa::State& state : dfa.states) {
    for (const ByteEdge& edge : state.edges) begins[edge.low] = begins[edge.high + 1U] = true;
  }
  std::vector<uint8_t> classes(256);
  uint8_t now = 0;
  for (size_t byte = 1; byte < 256; ++byte) {
    if (begins[byte]) ++now;
    classes[byte] = now;
  }
  *count = now + size_t{1};
  return classes;
}

// Hopcroft's algorithm. Blocks of states are stretches of one array; a state without an edge for a
// class leads nowhere, which is no block.
class Blocks {
 public:
  explicit Blocks(const Dfa& dfa) : states_(dfa.states.size()) {
    size_t n_classes = 0;
    const std::vector<uint8_t> classes = byte_classes(dfa, &n_classes);
    into_.resize(n_classes);
    for (uint32_t s = 0; s < states_; ++s) {
      for (const ByteEdge& edge : dfa.states[s].edges) {
        for (size_t c = classes[edge.low]; c <= classes[edge.high]; ++c) {
          into_[c].emplace_back(edge.target, s);
        }
      }
    }
    for (auto& edges : into_) std::sort(edges.begin(), edges.end());
    order_.resize(states_);
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_partition(order_.begin(), order_.end(),
                          [&](uint32_t s) { return dfa.states[s].final; });
    place_.resize(states_);
    for (uint32_t i = 0; i < states_; ++i) place_[order_[i]] = i;
    block_.assign(states_, 0);
    uint32_t n_final = 0;
    for (const Dfa::State& state : dfa.states) n_final += state.final ? 1 : 0;
    add_block(0, n_final);
    if (n_final < states_) add_block(n_final, static_cast<uint32_t>(states_));
    while (!open_.empty()) {
      const uint32_t block = open_.back();
      open_.pop_back();
      blocks_[block].open = false;
      const std::vector<uint32_t> members(order_.begin() + blocks_[block].begin,
                                          order_.begin() + blocks_[block].end);
      for (const auto& edges : into_) split_by(members, edges);
    }
  }

  [[nodiscard]] uint32_t of(uint32_t state) const { return block_[state]; }
  [[nodiscard]] size_t count() const { return blocks_.size(); }

 private:
  struct Block {
    uint32_t begin;
    uint32_t end;
    uint32_t marked;  // members before it
    bool open;
  };

  void add_block(uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i)
      block_[order_[i]] = static_cast<uint32_t>(blocks_.size());
    open_.push_back(static_cast<uint32_t>(blocks_.size()));
    blocks_.push_back({begin, end, begin, true});
  }

  using Edges = std::vector<std::pair<uint32_t, uint32_t>>;  // target, source; in order

  void split_by(const std::vector<uint32_t>& members, const Edges& edges) {
    touched_.clear();
    for (const uint32_t member : members) {
      auto at = std::lower_bound(edges.begin(), edges.end(), std::pair(member, 0U));
      for (; at != edges.end() && at->first == member; ++at) {
        Block& block = blocks_[block_[at->second]];
        const uint32_t old = place_[at->second];
        if (old < block.marked) continue;
        if (block.marked == block.begin) touched_.push_back(block_[at->second]);
        const uint32_t other = order_[block.marked];
        std::swap(order_[old], order_[block.marked]);
        place_[other] = old;
        place_[at->second] = block.marked++;
      }
    }
    for (const uint32_t index : touched_) {
      Block& block = blocks_[index];
      const uint32_t begin = block.begin;
      const uint32_t middle = block.marked;
      const uint32_t end = block.end;
      block.marked = begin;
      if (middle == end) continue;
      // The larger part stays what it is, unless all of it waits anyway.
      const bool first_smaller = middle - begin <= end - middle;
      if (first_smaller) {
        block.begin = block.marked = middle;
        add_block(begin, middle);
      } else {
        block.end = middle;
        add_block(middle, end);
      }
    }
  }

  size_t states_;
  std::vector<Edges> into_;  // by class
  std::vector<uint32_t> order_;
  std::vector<uint32_t> place_;
  std::vector<uint32_t> block_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> open_;
  std::vector<uint32_t> touched_;
};

void add_edge(std::vector<ByteEdge>* edges, uint8_t low, uint8_t high, uint32_t target) {
  if (!edges->empty() && edges->back().target == target && edges->back().high + 1 == low) {
    edges->back().high = high;
  } else {
    edges->push_back({low, high, target});
  }
}

}  // namespace

Dfa minimise(const Dfa& dfa) {
  const Dfa trimmed = trim(dfa);
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
  std::unordered_map<uint64_t, uint32_t> known;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const auto number = [&](uint32_t s, uint32_t t) {
    const auto [place, added] =
        known.try_emplace(static_cast<uint64_t>(s) << 32 | t, static_cast<uint32_t>(pairs.size()));
    if (added) pairs.emplace_back(s, t);
    return place->second;
  };
  number(a.empty() ? kNone : 0, b.empty() ? kNone : 0);
  uint64_t work = 0;
  const std::vector<ByteEdge> kNoEdges;
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
      const auto look = [&](const std::vector<ByteEdge>& edges, size_t at) {
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
    if (pairs.size() > fuel.states || work > fuel.work) {
      return error(Code::kGrammar, "an automaton of more than %zu states", fuel.states);
    }
  }
  return minimise(made);
}

ExprId expression_of(Expressions& to, const Dfa& dfa) {
  if (dfa.empty()) return Expressions::kNever;
  Diagram diagram;
  for (uint32_t s = 0; s < dfa.states.size(); ++s) {
    diagram.final.push_back(dfa.states[s].final);
    std::map<uint32_t, ByteSet> sets;
    for (const ByteEdge& edge : dfa.states[s].edges) {
      sets[edge.target].add(ByteSet::range(edge.low, edge.high));
    }
    for (const auto& [target, set] : sets) diagram.ways.push_back({s, target, to.bytes(set)});
  }
  return to.diagram(std::move(diagram));
}

}  // namespace gen::grammar
