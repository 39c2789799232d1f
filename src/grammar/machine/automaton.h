// SPDX-License-Identifier: Apache-2.0
// One machine under construction: first with epsilon edges (Nfa), then without (Automaton).
// determinise() makes transitions on bytes, tokens and calls unique where that stays small;
// elsewhere some states keep several transitions on a byte, and the recogniser follows them in
// parallel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "grammar/base/building.h"
#include "grammar/base/byte_set.h"
#include "grammar/base/edge_list.h"
#include "grammar/machine/machines.h"

namespace gen::grammar {

/// A machine and its loop (0: none), packed into a word.
using Call = uint64_t;
inline Call make_call(uint32_t machine, uint32_t loop) noexcept {
  return static_cast<uint64_t>(machine) << 32 | loop;
}
inline uint32_t callee(Call call) noexcept { return static_cast<uint32_t>(call >> 32); }
inline uint32_t loop_of(Call call) noexcept { return static_cast<uint32_t>(call); }

/// Loops by number; 0 means none.
class Loops {
 public:
  uint32_t number(const Loop& loop) {
    const auto [place, added] =
        known_.try_emplace({loop.machine, loop.min, loop.max, loop.members,
                            (loop.separator ? 1U : 0U) | (loop.limited ? 2U : 0U)},
                           list_.size());
    if (added) list_.push_back(loop);
    return static_cast<uint32_t>(place->second);
  }
  [[nodiscard]] const Loop& at(uint32_t number) const noexcept { return list_[number]; }
  [[nodiscard]] std::vector<Loop> take() noexcept { return std::move(list_); }

 private:
  std::vector<Loop> list_ = {Loop()};
  std::map<std::array<uint32_t, 5>, size_t> known_;
};

struct Nfa {
  enum class On : uint8_t { kNothing, kBytes, kCall, kToken };
  struct Edge {
    uint32_t from;
    uint32_t to;
    On on;
    uint64_t label;  // index of the set; a Call; a token term
  };
  static constexpr uint32_t kStart = 0;  // no edge may lead there
  static constexpr uint32_t kFinal = 1;

  uint32_t n_nodes = 2;
  std::vector<Edge> edges;
  std::vector<ByteSet> sets;
  std::vector<bool> counted;  // by node; missing ones are not counted

  void clear() {
    n_nodes = 2;
    counted.clear();
    edges.clear();
    sets.clear();
  }
  uint32_t add_node() { return n_nodes++; }
  void count(uint32_t node) {
    if (counted.size() <= node) counted.resize(node + 1, false);
    counted[node] = true;
  }
  [[nodiscard]] bool is_counted(uint32_t node) const {
    return node < counted.size() && counted[node];
  }
  void add_empty(uint32_t from, uint32_t to) { edges.push_back({from, to, On::kNothing, 0}); }
  void add_bytes(uint32_t from, uint32_t to, const ByteSet& set) {
    edges.push_back({from, to, On::kBytes, sets.size()});
    sets.push_back(set);
  }
  void add_call(uint32_t from, uint32_t to, Call call) {
    edges.push_back({from, to, On::kCall, call});
  }
  void add_token(uint32_t from, uint32_t to, uint32_t term) {
    edges.push_back({from, to, On::kToken, term});
  }
};

struct Automaton {
  struct CallTo {
    Call call;
    uint32_t target;
  };
  struct Node {
    EdgeList bytes;  // by low
    ShortList<CallTo, 1> calls;
    ShortList<TokenEdge, 1> tokens;
    bool final = false;
    bool several = false;  // several transitions on a byte
    bool counted = false;  // one of a diagram's counted nodes
  };
  std::vector<Node> nodes;  // [0] is the start: never final, without incoming edges
  [[nodiscard]] size_t n_edges() const noexcept;
};

/// The language of `nfa` without the empty text. `max_edges` limits the result: false if that is
/// exceeded, or if `building`, which may be null, has stopped.
[[nodiscard]] bool determinise(const Nfa& nfa, size_t max_edges, Automaton* out,
                               Building* building = nullptr);

}  // namespace gen::grammar
