// SPDX-License-Identifier: Apache-2.0
// Merges equivalent states, see dfa.h: states that lead to no cycle by their successors, starting
// from the ends; the others by partition refinement.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "grammar/expression/dfa.h"
#include "grammar/base/hash.h"
#include "grammar/base/hash_index.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNoState = UINT32_MAX;

uint64_t hash_of(const EdgeList& edges, bool final) {
  uint64_t hash = final ? 1 : 0;
  for (const ByteEdge& edge : edges) {
    hash =
        mix(hash, static_cast<uint64_t>(edge.target) << 16 | uint64_t{edge.low} << 8U | edge.high);
  }
  return hash;
}

// Edges by their targets.
class Into {
 public:
  explicit Into(const Dfa& dfa) : begin_(dfa.states.size() + 1, 0) {
    for (const Dfa::State& state : dfa.states) {
      for (const ByteEdge& edge : state.edges) ++begin_[edge.target + size_t{1}];
    }
    for (size_t s = 0; s < dfa.states.size(); ++s) begin_[s + 1] += begin_[s];
    from_.resize(begin_.back());
    std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (uint32_t s = 0; s < dfa.states.size(); ++s) {
      for (const ByteEdge& edge : dfa.states[s].edges) from_[next[edge.target]++] = s;
    }
  }
  [[nodiscard]] std::span<const uint32_t> operator[](uint32_t state) const {
    return std::span(from_).subspan(begin_[state], begin_[state + size_t{1}] - begin_[state]);
  }

 private:
  std::vector<uint32_t> begin_;
  std::vector<uint32_t> from_;  // a state for each edge
};

// For each state an equivalent representative, in one pass. A state may have a self-loop; states
// that lead into any other cycle stay as they are.
std::vector<uint32_t> alike_from_ends(const Dfa& dfa) {
  constexpr uint32_t kSelf = UINT32_MAX - 1;
  const auto count = static_cast<uint32_t>(dfa.states.size());
  const Into into(dfa);
  std::vector<uint32_t> one(count);
  std::iota(one.begin(), one.end(), 0);
  std::vector<uint32_t> waits(count, 0);  // number of edges whose targets are not known yet
  std::vector<uint32_t> open;
  for (uint32_t s = 0; s < count; ++s) {
    for (const ByteEdge& edge : dfa.states[s].edges) waits[s] += edge.target != s ? 1 : 0;
    if (waits[s] == 0) open.push_back(s);
  }
  std::vector<EdgeList> looks;  // of distinct states, in the order in which they were met
  EdgeList look;
  std::vector<uint32_t> met;
  HashIndex known;
  while (!open.empty()) {
    const uint32_t state = open.back();
    open.pop_back();
    const bool final = dfa.states[state].final;
    look.shrink(0);
    for (const ByteEdge& edge : dfa.states[state].edges) {
      look.add({edge.low, edge.high, edge.target == state ? kSelf : one[edge.target]});
    }
    const uint64_t hash = hash_of(look, final);
    const uint32_t old = known.find(hash, [&](uint32_t i) {
      return dfa.states[met[i]].final == final &&
             std::equal(look.begin(), look.end(), looks[i].begin(), looks[i].end());
    });
    if (old != HashIndex::kNone) {
      one[state] = met[old];
    } else {
      known.add(hash, static_cast<uint32_t>(met.size()));
      met.push_back(state);
      looks.push_back(look);
    }
    for (const uint32_t from : into[state]) {
      if (from != state && --waits[from] == 0) open.push_back(from);
    }
  }
  return one;
}

// Keeps only the representatives.
Dfa states_joined(const Dfa& dfa, const std::vector<uint32_t>& one) {
  Dfa made;
  std::vector<uint32_t> number(dfa.states.size(), kNoState);
  std::vector<uint32_t> reached = {one[0]};
  EdgeList edges;  // kept for its memory
  number[one[0]] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    const Dfa::State& old = dfa.states[reached[i]];
    edges.shrink(0);
    for (const ByteEdge& edge : old.edges) {
      const uint32_t target = one[edge.target];
      if (number[target] == kNoState) {
        number[target] = static_cast<uint32_t>(reached.size());
        reached.push_back(target);
      }
      edges.add({edge.low, edge.high, number[target]});
    }
    made.states.push_back({edges, old.final});
  }
  return made;
}

// Blocks of states that are not known to differ. A state with an edge into a block that was split
// is examined again; the larger piece of a block keeps its number, so that a state changes its
// block, and its predecessors are examined, at most log n times.
class Blocks {
 public:
  explicit Blocks(const Dfa& dfa) : dfa_(dfa), into_(dfa), block_(dfa.states.size()) {
    const auto count = static_cast<uint32_t>(dfa.states.size());
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

  struct Part {
    size_t begin;
    size_t end;
  };

  void wait(uint32_t state) {
    if (waits_[state]) return;
    waits_[state] = true;
    const uint32_t block = block_[state];
    if (waiting_.size() <= block) waiting_.resize(block + size_t{1});
    if (waiting_[block].empty()) open_.push_back(block);
    waiting_[block].push_back(state);
  }

  // Edges of a state with blocks as targets; adjacent edges to the same block are merged.
  void look(uint32_t state, EdgeList* out) const {
    out->shrink(0);
    for (ByteEdge edge : dfa_.states[state].edges) {
      edge.target = block_[edge.target];
      out->add(edge);
    }
  }

  [[nodiscard]] uint64_t hash_of_state(uint32_t state) {
    look(state, &edges_);
    return hash_of(edges_, dfa_.states[state].final);
  }

  [[nodiscard]] bool alike(uint32_t a, uint32_t b) {
    if (dfa_.states[a].final != dfa_.states[b].final) return false;
    look(a, &edges_);
    look(b, &other_edges_);
    return std::equal(edges_.begin(), edges_.end(), other_edges_.begin(), other_edges_.end());
  }

  // Waiting members of a block may differ from the others, which are equivalent to one another.
  void divide(uint32_t block) {
    std::vector<uint32_t>& waiting = now_;
    waiting.clear();
    waiting.swap(waiting_[block]);
    looked_.clear();
    for (const uint32_t state : waiting) {
      waits_[state] = false;
      looked_.push_back({hash_of_state(state), state});
    }
    if (members_[block].size() == 1) return;
    std::sort(looked_.begin(), looked_.end(), [](const Looked& a, const Looked& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.state < b.state;
    });
    // Pieces: runs of `looked_`, and the members that did not wait.
    const uint32_t still = other_than(block, waiting);
    std::vector<Part>& parts = parts_;
    parts.clear();
    for (size_t i = 0; i < looked_.size(); ++i) {
      const bool joins = !parts.empty() && looked_[i].hash == looked_[i - 1].hash &&
                         alike(looked_[i].state, looked_[i - 1].state);
      if (joins) {
        ++parts.back().end;
      } else {
        parts.push_back({i, i + 1});
      }
    }
    size_t keeps = parts.size();  // the piece that did not wait
    size_t most = members_[block].size() - looked_.size();
    if (still != kNoState) {
      for (size_t p = 0; p < parts.size(); ++p) {
        if (!alike(looked_[parts[p].begin].state, still)) continue;
        most += parts[p].end - parts[p].begin;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(p));
        keeps = parts.size();
        break;
      }
    }
    const bool with_still = still != kNoState;
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
      // The other pieces move; the one that keeps the block's number stays.
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
      for (const uint32_t from : into_[state]) wait(from);
    }
  }

  // A member that did not wait.
  uint32_t other_than(uint32_t block, const std::vector<uint32_t>& waiting) {
    if (waiting.size() == members_[block].size()) return kNoState;
    for (const uint32_t state : waiting) waits_[state] = true;
    uint32_t found = kNoState;
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
  const Into into_;
  std::vector<uint32_t> block_;
  std::vector<uint32_t> place_;                 // position within its block
  std::vector<std::vector<uint32_t>> members_;  // by block
  std::vector<std::vector<uint32_t>> waiting_;  // by block
  std::vector<bool> waits_;
  std::vector<uint32_t> open_;  // blocks with members that wait
  std::vector<Looked> looked_;
  std::vector<uint32_t> moved_;
  // Buffers of divide(), kept for their memory.
  std::vector<uint32_t> now_;
  std::vector<Part> parts_;
  EdgeList edges_;
  EdgeList other_edges_;
};

}  // namespace

Dfa minimise(Dfa dfa) {
  Dfa trimmed = trim(std::move(dfa));
  if (trimmed.empty()) return trimmed;
  trimmed = states_joined(trimmed, alike_from_ends(trimmed));
  const Blocks blocks(trimmed);
  Dfa made;
  std::vector<uint32_t> number(blocks.count(), kNoState);
  std::vector<uint32_t> member = {0};  // a member of each new state
  number[blocks.of(0)] = 0;
  for (size_t i = 0; i < member.size(); ++i) {
    const Dfa::State& old = trimmed.states[member[i]];
    Dfa::State state;
    state.final = old.final;
    for (const ByteEdge& edge : old.edges) {
      uint32_t& target = number[blocks.of(edge.target)];
      if (target == kNoState) {
        target = static_cast<uint32_t>(member.size());
        member.push_back(edge.target);
      }
      state.edges.add({edge.low, edge.high, target});
    }
    made.states.push_back(std::move(state));
  }
  return made;
}

}  // namespace gen::grammar
