// SPDX-License-Identifier: Apache-2.0
// Turns left recursion into loops, see left_recursion.h.
#include "grammar/machine/left_recursion.h"

#include <algorithm>
#include <span>
#include <utility>

#include "grammar/base/components.h"

namespace gen::grammar {
namespace {

Graph first_calls(const std::vector<Automaton>& machines) {
  Graph graph(static_cast<uint32_t>(machines.size()));
  for (const Automaton& machine : machines) {
    for (const Automaton::CallTo& edge : machine.nodes[0].calls) graph.add(callee(edge.call));
    graph.close();
  }
  return graph;
}

constexpr uint32_t kNotInRing = UINT32_MAX;

// `place` is kNotInRing for all machines before and after.
class Ring {
 public:
  Ring(const std::vector<Automaton>& machines, std::span<const uint32_t> members,
       std::vector<uint32_t>* place, Loops* loops)
      : machines_(machines), members_(members), place_(*place), loops_(*loops) {
    for (uint32_t i = 0; i < members.size(); ++i) place_[members[i]] = i;
  }
  ~Ring() {
    for (const uint32_t member : members_) place_[member] = kNotInRing;
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  Nfa goal(uint32_t machine) {
    Nfa nfa;
    std::vector<uint32_t> finished;
    for (size_t i = 0; i < members_.size(); ++i) finished.push_back(nfa.add_node());
    nfa.add_empty(finished[place_[machine]], Nfa::kFinal);
    for (size_t i = 0; i < members_.size(); ++i) {
      const Automaton& member = machines_[members_[i]];
      const uint32_t base = nfa.n_nodes;
      nfa.n_nodes += static_cast<uint32_t>(member.nodes.size());
      for (uint32_t k = 0; k < member.nodes.size(); ++k) {
        const Automaton::Node& node = member.nodes[k];
        const uint32_t from = k == 0 ? Nfa::kStart : base + k;
        if (node.final) nfa.add_empty(from, finished[i]);
        for (const ByteEdge& edge : node.bytes) {
          nfa.add_bytes(from, base + edge.target, ByteSet::range(edge.low, edge.high));
        }
        for (const TokenEdge& edge : node.tokens) {
          nfa.add_token(from, base + edge.target, edge.term);
        }
        for (const Automaton::CallTo& edge : node.calls) {
          const uint32_t ring = place_[callee(edge.call)];
          if (k != 0 || ring == kNotInRing) {
            nfa.add_call(from, base + edge.target, edge.call);
          } else {
            rest(&nfa, finished[ring], base + edge.target, edge.call);
          }
        }
      }
    }
    return nfa;
  }

 private:
  // After the first call of the cycle; if that is counted, one round is done.
  void rest(Nfa* nfa, uint32_t from, uint32_t to, Call call) {
    if (loop_of(call) == 0) {
      nfa->add_empty(from, to);
      return;
    }
    Loop loop = loops_.at(loop_of(call));
    if (loop.min <= 1) nfa->add_empty(from, to);
    if (loop.max == 1) return;
    loop.min = std::max(loop.min, 2U) - 1;
    if (loop.max != kUnbounded) --loop.max;
    const uint32_t number = loop.max == 1 ? 0 : loops_.number(loop);
    nfa->add_call(from, to, make_call(loop.machine, number));
  }

  const std::vector<Automaton>& machines_;
  std::span<const uint32_t> members_;
  std::vector<uint32_t>& place_;  // position among the members, by machine
  Loops& loops_;
};

}  // namespace

bool remove_left_recursion(std::vector<Automaton>* machines, Loops* loops, size_t max_edges,
                           Building* building) {
  const Graph graph = first_calls(*machines);
  std::vector<std::vector<uint32_t>> rings;
  components(graph, [&](std::span<const uint32_t> members) {
    if (members.size() > 1 || graph.has(members[0], members[0])) {
      rings.emplace_back(members.begin(), members.end());
    }
  });
  size_t total = 0;
  std::vector<uint32_t> place(machines->size(), kNotInRing);
  for (const std::vector<uint32_t>& members : rings) {
    std::vector<std::pair<uint32_t, Automaton>> made;
    Ring ring(*machines, members, &place, loops);
    size_t edges = 0;
    for (const uint32_t member : members) edges += (*machines)[member].n_edges();
    if (edges > max_edges / members.size()) return false;
    for (const uint32_t member : members) {
      made.emplace_back(member, Automaton());
      if (!determinise(ring.goal(member), max_edges - total, &made.back().second, building)) {
        return false;
      }
      total += made.back().second.n_edges();
      if (total > max_edges) return false;
    }
    for (auto& [member, automaton] : made) (*machines)[member] = std::move(automaton);
  }
  return true;
}

std::vector<uint32_t> call_order(const std::vector<Automaton>& machines) {
  std::vector<uint32_t> order(machines.size());
  auto next = static_cast<uint32_t>(machines.size());
  components(first_calls(machines), [&](std::span<const uint32_t> members) {
    for (const uint32_t member : members) order[member] = --next;
  });
  return order;
}

}  // namespace gen::grammar
