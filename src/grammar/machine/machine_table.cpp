// SPDX-License-Identifier: Apache-2.0
// One table of all machines, see machine_table.h.
#include "grammar/machine/machine_table.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <span>
#include <utility>

#include "grammar/machine/left_recursion.h"
#include "grammar/machine/machine_limits.h"
#include "grammar/machine/members.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNoEdge = UINT32_MAX;
constexpr uint64_t kInfinite = UINT64_MAX;
constexpr uint64_t kMost = uint64_t{1} << 31;  // longer paths count as equal
// Maximum pairs of edges compared per machine: calls beyond it keep their frames.
constexpr size_t kMaxCompared = 1U << 20U;
// In visited nodes.
constexpr uint64_t kWorkPerWay = 8;
constexpr uint64_t kWorkPerMember = 24;
constexpr uint64_t kWorkPerMachineState = 32;

// Minimum number of bytes and named tokens from each state to the end of its machine, by Knuth's
// generalisation of Dijkstra's algorithm: the length of a call is known once those of its machine
// and of its target are.
class Shortest {
 public:
  Shortest(const std::vector<Automaton>& automata, const std::vector<uint32_t>& bases,
           const std::vector<Loop>& loops, const std::vector<Members>& members, uint32_t n_states,
           Building* building)
      : building_(building),
        loops_(loops),
        members_(members),
        bases_(bases),
        of_(n_states, kInfinite),
        last_into_(n_states, kNoEdge) {
    size_t n_edges = 0;
    for (const Automaton& automaton : automata) n_edges += automaton.n_edges();
    edges_.reserve(n_edges + n_edges / 4);
    for (uint32_t m = 0; m < automata.size(); ++m) {
      for (uint32_t k = 0; k < automata[m].nodes.size(); ++k) {
        const Automaton::Node& node = automata[m].nodes[k];
        const uint32_t from = bases[m] + k;
        if (node.final) reach(from, 0);
        for (const ByteEdge& edge : node.bytes) {
          add(bases[m] + edge.target, {from, kNoEdge, 1, kNoEdge});
        }
        for (const TokenEdge& edge : node.tokens) {
          add(bases[m] + edge.target, {from, kNoEdge, 1, kNoEdge});  // a token counts as one
        }
        for (const Automaton::CallTo& edge : node.calls) {
          const Edge way = {from, static_cast<uint32_t>(calls_.size()), 0, kNoEdge};
          const Loop& loop = loops_[loop_of(edge.call)];
          calls_.push_back({bases[callee(edge.call)], bases[m] + edge.target, loop_of(edge.call)});
          for (const Members::Member& member : members[loop.members].list) {
            add(bases[member.machine], way);
          }
          add(calls_.back().start, way);
          add(calls_.back().target, way);
        }
      }
    }
    for (;;) {
      const bool any_next = n_done_ < next_.size();
      Open least = {next_length_, any_next ? next_[n_done_] : 0};
      if (!open_.empty() && (!any_next || open_.top().first <= next_length_)) {
        least = open_.top();
        open_.pop();
      } else if (any_next) {
        ++n_done_;
      } else {
        break;
      }
      const auto [length, state] = least;
      if (of_[state] != length) continue;
      if (!goes_on(building_, kWorkPerWay)) break;
      now_ = length;
      for (uint32_t i = last_into_[state]; i != kNoEdge; i = edges_[i].next)
        relax(edges_[i], length);
    }
    now_ = kMost;
  }

  /// Keeps the members that can be completed, shortest first.
  static void complete(const Shortest& shortest, const std::vector<uint32_t>& bases,
                       Members* members, uint64_t separator) {
    for (Members::Member& member : members->list) {
      const uint32_t length = shortest[bases[member.machine]];
      member.shortest = length == kFar ? kFar : static_cast<uint32_t>(length + separator);
    }
    std::erase_if(members->list, [](const auto& member) { return member.shortest == kFar; });
    if (members->in_order) {
      uint32_t further = 0;
      for (size_t i = members->list.size(); i-- > 0;) {
        Members::Member& member = members->list[i];
        member.further = further;
        if (!member.once) member.further = further = kUnbounded;
        if (further != kUnbounded) ++further;
      }
    } else {
      std::stable_sort(members->list.begin(), members->list.end(),
                       [](const auto& a, const auto& b) { return a.shortest < b.shortest; });
    }
    find_cover(members);
    members->separator_shortest = static_cast<uint32_t>(separator);
  }

  [[nodiscard]] uint32_t operator[](uint32_t state) const {
    return is_known(state) ? static_cast<uint32_t>(of_[state]) : kFar;
  }

 private:
  struct Edge {
    uint32_t from;
    uint32_t call;   // kNoEdge for bytes and tokens
    uint32_t count;  // number of bytes
    uint32_t next;
  };
  struct CallWay {
    uint32_t start;  // of the machine called
    uint32_t target;
    uint32_t loop;
    bool known = false;  // final: nothing found later makes it shorter
  };

  void add(uint32_t to, Edge edge) {
    // Edges from one state to the same target are adjacent.
    const uint32_t last = last_into_[to];
    if (edge.call == kNoEdge && last != kNoEdge && edges_[last].from == edge.from &&
        edges_[last].call == kNoEdge) {
      return;
    }
    edge.next = last_into_[to];
    last_into_[to] = static_cast<uint32_t>(edges_.size());
    edges_.push_back(edge);
  }

  void relax(const Edge& edge, uint64_t length) {
    if (edge.call == kNoEdge) {
      reach(edge.from, length + edge.count);
      return;
    }
    CallWay& call = calls_[edge.call];
    if (call.known || !is_known(call.start) || !is_known(call.target)) return;
    const uint64_t once = of_[call.start];
    const uint64_t behind = of_[call.target];
    const Loop& loop = loops_[call.loop];
    if (loop.members == 0) {
      reach(edge.from, std::min(once * loop.min, kMost) + behind);
      return;
    }
    const Members& members = members_[loop.members];
    if (!goes_on(building_, members.list.size()) || !required_known(members)) return;
    const uint64_t least = length_of(members, once, &call.known);
    if (least != kInfinite) reach(edge.from, least + behind);
  }

  // Whether the length is final.
  bool is_known(uint32_t state) const { return of_[state] <= now_; }

  // Whether every required bit has a known member.
  bool required_known(const Members& members) const {
    MemberSet met;
    for (const Members::Member& member : members.list) {
      if (is_known(bases_[member.machine])) met |= member.bits;
    }
    return (members.required & ~met).none();
  }

  // The length of members and the separators between them, by what is known so far.
  uint64_t length_of(const Members& members, uint64_t separator, bool* final) const {
    Members known = members;
    complete(*this, bases_, &known, separator);
    if (!members_possible(known)) return kInfinite;
    uint64_t least = kInfinite;
    uint64_t looked = known.list.size();
    for (const Members::Member& member : known.list) {
      MembersSeen seen;
      if (!add_member(known, member, &seen)) continue;
      least = std::min(least, member.shortest - separator + missing_length(known, seen, &looked));
      if (!goes_on(building_, kWorkPerMember * std::exchange(looked, 1))) break;
    }
    // Members become known in order of length: a list without the unknown ones is no longer than
    // one with them, unless a member covers several bits.
    *final = least != kInfinite && known.shared.none() && !known.in_order;
    return least == kInfinite ? least : std::min(least, kMost);
  }

  void reach(uint32_t state, uint64_t length) {
    length = std::min(length, kMost);
    if (length >= of_[state]) return;
    of_[state] = length;
    if (n_done_ == next_.size()) {
      next_.clear();
      n_done_ = 0;
      next_length_ = now_ + 1;
    }
    if (length == next_length_) {
      next_.push_back(state);
    } else {
      open_.emplace(length, state);
    }
  }

  using Open = std::pair<uint64_t, uint32_t>;
  Building* const building_;
  const std::vector<Loop>& loops_;
  const std::vector<Members>& members_;
  const std::vector<uint32_t>& bases_;
  uint64_t now_ = 0;  // lengths up to this are final
  std::vector<uint64_t> of_;
  std::vector<CallWay> calls_;
  std::vector<uint32_t> last_into_;
  std::vector<Edge> edges_;
  // States to visit: most are one byte longer than the last one, and need no queue.
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  std::vector<uint32_t> next_;  // all of length next_length_
  size_t n_done_ = 0;
  uint64_t next_length_ = 0;
};

template <typename Edge, typename Same>
bool within(std::span<const Edge> some, std::span<const Edge> all, Same same) {
  return std::all_of(some.begin(), some.end(), [&](const Edge& one) {
    return std::any_of(all.begin(), all.end(), [&](const Edge& other) { return same(one, other); });
  });
}

// Whether every edge of `one` is also an edge of `other`.
bool edges_within(const Machines& table, StateId one, StateId other) {
  return within(table.bytes(one), table.bytes(other),
                [](const ByteEdge& x, const ByteEdge& y) {
                  return x.low >= y.low && x.high <= y.high && x.target == y.target;
                }) &&
         within(table.calls(one), table.calls(other),
                [](const CallEdge& x, const CallEdge& y) {
                  return x.machine == y.machine && x.target == y.target && x.loop == y.loop;
                }) &&
         within(table.tokens(one), table.tokens(other), [](const TokenEdge& x, const TokenEdge& y) {
           return x.term == y.term && x.target == y.target;
         });
}

size_t edges_of(const Machines& table, StateId state) {
  return 1 + table.bytes(state).size() + table.calls(state).size() + table.tokens(state).size();
}

// A tail call: nothing follows it. Or a machine calls itself, and whatever may follow the call may
// also follow any of its ends, as in e ::= e "+" e, where the depth would be as informative as the
// length.
void find_hand_overs(Machines* table, uint32_t machine, uint32_t n_states, Building* building) {
  const StateId first = table->starts[machine];
  std::vector<StateId> finals;
  for (StateId state = first; state < first + n_states; ++state) {
    if (table->states[state].final) finals.push_back(state);
  }
  // By target: the last result is reused for calls with the same target.
  StateId asked = kEnd;
  bool repeats = false;
  size_t work = kMaxCompared;
  for (uint32_t i = table->states[first].calls; i < table->states[first + n_states].calls; ++i) {
    CallEdge& edge = table->call_edges[i];
    const State& target = table->states[edge.target];
    if (edge.loop != 0 || !target.final || target.limit != Limit::kNone) continue;
    edge.hand_over = !target.reads && table->calls(edge.target).empty();
    if (edge.hand_over || edge.machine != machine) continue;
    if (asked != edge.target) {
      asked = edge.target;
      repeats = std::all_of(finals.begin(), finals.end(), [&](StateId final) {
        const size_t cost = edges_of(*table, asked) * edges_of(*table, final);
        if (cost > work || !goes_on(building, cost)) return false;
        work -= cost;
        return edges_within(*table, asked, final);
      });
    }
    edge.hand_over = repeats;
  }
}

}  // namespace

Machines make_table(const std::vector<Automaton>& automata, std::vector<Loop> loops,
                    std::vector<Members> members, uint32_t root, Building* building) {
  Machines table;
  std::vector<uint32_t> bases;
  uint32_t n_states = kFirstState;
  for (const Automaton& automaton : automata) {
    bases.push_back(n_states);
    n_states += static_cast<uint32_t>(automaton.nodes.size());
  }
  if (!goes_on(building, kWorkPerMachineState * n_states)) return table;
  const Shortest shortest(automata, bases, loops, members, n_states, building);
  if (building != nullptr && building->stopped()) return table;
  for (Members& one : members) {
    if (one.list.empty()) continue;
    const uint32_t separator = shortest[bases[one.separator]];
    if (separator == kFar) {
      one.list.clear();
    } else {
      Shortest::complete(shortest, bases, &one, separator);
    }
  }

  table.states.reserve(n_states + 1);
  const auto begin_state = [&]() -> State& {
    State state;
    state.bytes = static_cast<uint32_t>(table.byte_edges.size());
    state.calls = static_cast<uint32_t>(table.call_edges.size());
    state.tokens = static_cast<uint32_t>(table.token_edges.size());
    return table.states.emplace_back(state);
  };
  begin_state().shortest = 0;
  begin_state().shortest = 0;
  for (uint32_t m = 0; m < automata.size(); ++m) {
    for (uint32_t k = 0; k < automata[m].nodes.size(); ++k) {
      const Automaton::Node& node = automata[m].nodes[k];
      State& state = begin_state();
      state.shortest = shortest[bases[m] + k];
      state.final = node.final;
      for (ByteEdge edge : node.bytes) {
        edge.target += bases[m];
        if (shortest[edge.target] != kFar) table.byte_edges.push_back(edge);
      }
      for (const Automaton::CallTo& edge : node.calls) {
        const uint32_t machine = callee(edge.call);
        const uint32_t target = bases[m] + edge.target;
        if (shortest[target] == kFar || shortest[bases[machine]] == kFar) continue;
        const uint32_t list = loops[loop_of(edge.call)].members;
        if (list != 0 && !members_possible(members[list])) continue;
        table.call_edges.push_back({machine, target, loop_of(edge.call), false});
      }
      for (TokenEdge edge : node.tokens) {
        edge.target += bases[m];
        if (shortest[edge.target] != kFar) table.token_edges.push_back(edge);
      }
      const bool calls = state.calls != table.call_edges.size();
      const bool tokens = state.tokens != table.token_edges.size();
      state.reads = tokens || state.bytes != table.byte_edges.size();
      state.simple = !calls && !node.several;
    }
  }
  begin_state();
  table.loops = std::move(loops);
  table.members = std::move(members);
  table.starts = std::move(bases);
  table.order = call_order(automata);
  find_limits(automata, &table, building);
  for (uint32_t m = 0; m < automata.size(); ++m) {
    find_hand_overs(&table, m, static_cast<uint32_t>(automata[m].nodes.size()), building);
  }
  table.root = root;
  table.root_matches = table.shortest(root) != kFar;
  return table;
}

}  // namespace gen::grammar
