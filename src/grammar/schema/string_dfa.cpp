// SPDX-License-Identifier: Apache-2.0
// Strings as automata, see string_dfa.h.
#include "grammar/schema/string_dfa.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "grammar/base/hash.h"
#include "grammar/base/hash_index.h"

namespace gen::grammar {
namespace {

struct Utf8 {
  // Adds a whole character after a state, whose first bytes lead to `first` (a state).
  static void add_character(Dfa* dfa, uint32_t from, uint32_t to) {
    const auto state = [&] {
      dfa->states.emplace_back();
      return static_cast<uint32_t>(dfa->states.size() - 1);
    };
    const auto edge = [&](uint32_t at, uint32_t low, uint32_t high, uint32_t target) {
      dfa->states[at].edges.push_back(
          {static_cast<uint8_t>(low), static_cast<uint8_t>(high), target});
    };
    const uint32_t one = state();
    const uint32_t two = state();
    const uint32_t three = state();
    const uint32_t e0 = state();
    const uint32_t ed = state();
    const uint32_t f0 = state();
    const uint32_t f4 = state();
    edge(one, 0x80, 0xBF, to);
    edge(two, 0x80, 0xBF, one);
    edge(three, 0x80, 0xBF, two);
    edge(e0, 0xA0, 0xBF, one);
    edge(ed, 0x80, 0x9F, one);
    edge(f0, 0x90, 0xBF, two);
    edge(f4, 0x80, 0x8F, two);
    edge(from, 0x00, 0x7F, to);
    edge(from, 0xC2, 0xDF, one);
    edge(from, 0xE0, 0xE0, e0);
    edge(from, 0xE1, 0xEC, two);
    edge(from, 0xED, 0xED, ed);
    edge(from, 0xEE, 0xEF, two);
    edge(from, 0xF0, 0xF0, f0);
    edge(from, 0xF1, 0xF3, three);
    edge(from, 0xF4, 0xF4, f4);
  }
};

}  // namespace

Dfa any_string() {
  Dfa made;
  made.states.emplace_back();
  made.states[0].final = true;
  Utf8::add_character(&made, 0, 0);
  return made;
}

// States are made from the ends on, so that equivalent ones are merged at once.
Dfa string_set(std::span<const std::string> strings) {
  std::vector<std::string_view> sorted(strings.begin(), strings.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<Dfa::State> made;
  HashIndex known;
  const auto same = [](const Dfa::State& a, const Dfa::State& b) {
    return a.final == b.final &&
           std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(), b.edges.end());
  };
  const auto close = [&](Dfa::State* state) {
    uint64_t hash = state->final ? 1 : 0;
    for (const ByteEdge& edge : state->edges) {
      hash = mix(hash, static_cast<uint64_t>(edge.target) << 16U |
                           static_cast<uint64_t>(edge.low) << 8U | edge.high);
    }
    const uint32_t old = known.find(hash, [&](uint32_t i) { return same(made[i], *state); });
    if (old != HashIndex::kNone) return old;
    known.add(hash, static_cast<uint32_t>(made.size()));
    made.push_back(std::move(*state));
    return static_cast<uint32_t>(made.size() - 1);
  };
  std::vector<Dfa::State> open(1);  // along the previous string; the last edge of each continues it
  const auto close_to = [&](size_t depth) {
    while (open.size() > depth + 1) {
      const uint32_t target = close(&open.back());
      open.pop_back();
      auto& edges = open.back().edges;
      edges.back().target = target;
      const size_t count = edges.size();
      if (count > 1 && edges[count - 2].target == target &&
          edges[count - 2].high + 1 == edges[count - 1].low) {
        ++edges[count - 2].high;
        edges.pop_back();
      }
    }
  };
  std::string_view before;
  for (const std::string_view string : sorted) {
    const auto apart = std::mismatch(string.begin(), string.end(), before.begin(), before.end());
    const auto common = static_cast<size_t>(apart.first - string.begin());
    close_to(common);
    for (const char c : string.substr(common)) {
      const auto byte = static_cast<uint8_t>(c);
      open.back().edges.push_back({byte, byte, 0});
      open.emplace_back();
    }
    open.back().final = true;
    before = string;
  }
  close_to(0);
  Dfa all;
  if (sorted.empty()) return all;
  (void)close(&open[0]);
  // The start was made last, and comes first.
  const auto last = static_cast<uint32_t>(made.size() - 1);
  for (auto state = made.rbegin(); state != made.rend(); ++state) {
    for (ByteEdge& edge : state->edges) edge.target = last - edge.target;
    all.states.push_back(std::move(*state));
  }
  return all;
}

bool accepts(const Dfa& dfa, std::string_view text) {
  if (dfa.empty()) return false;
  uint32_t state = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const auto& edges = dfa.states[state].edges;
    const auto way = std::find_if(edges.begin(), edges.end(), [&](const ByteEdge& edge) {
      return edge.low <= byte && byte <= edge.high;
    });
    if (way == edges.end()) return false;
    state = way->target;
  }
  return dfa.states[state].final;
}

bool finite_strings(const Dfa& dfa, size_t most, std::vector<std::string>* out) {
  if (dfa.empty()) return true;
  // Every state leads to an end, so a path longer than the number of states is in a cycle.
  struct Step {
    uint32_t state;
    size_t n_edges;  // that are left; the last one is next
    uint32_t next;   // byte of it, + 1; 0: its last one
  };
  std::vector<std::string> found;
  std::string text;
  std::vector<Step> path;
  size_t n_open = 0;  // ways that are left, each of which leads to a string
  const auto go_to = [&](uint32_t number) {
    const Dfa::State& state = dfa.states[number];
    path.push_back({number, state.edges.size(), 0});
    for (const ByteEdge& edge : state.edges) n_open += edge.high - edge.low + size_t{1};
    if (state.final) found.push_back(text);
    return found.size() + n_open <= most;
  };
  if (!go_to(0)) return false;
  while (!path.empty()) {
    Step& at = path.back();
    if (at.n_edges == 0) {
      path.pop_back();
      if (!text.empty()) text.pop_back();
      continue;
    }
    const ByteEdge& edge = dfa.states[at.state].edges[at.n_edges - 1];
    const uint32_t byte = at.next == 0 ? edge.high : at.next - 1;
    at.next = byte;
    if (byte == edge.low) {
      --at.n_edges;
      at.next = 0;
    }
    if (path.size() > dfa.states.size()) return false;
    text += static_cast<char>(byte);
    --n_open;
    if (!go_to(edge.target)) return false;
  }
  out->insert(out->end(), std::make_move_iterator(found.begin()),
              std::make_move_iterator(found.end()));
  return true;
}

Lengths lengths_of(const Dfa& dfa) {
  Lengths made;
  // Characters are counted at their first bytes.
  const auto first = [](uint8_t byte) { return (byte & 0xC0U) != 0x80U; };
  const size_t count = dfa.states.size();
  std::vector<uint32_t> least(count, kUnbounded);
  std::vector<uint32_t> open = {0};
  least[0] = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    for (const ByteEdge& edge : dfa.states[open[i]].edges) {
      const uint32_t next = least[open[i]] + (first(edge.low) ? 1 : 0);
      if (next >= least[edge.target]) continue;
      least[edge.target] = next;
      open.push_back(edge.target);
    }
  }
  made.min = kUnbounded;
  for (size_t i = 0; i < count; ++i) {
    if (dfa.states[i].final) made.min = std::min(made.min, least[i]);
  }
  // The longest path, unless there is a cycle: by repeatedly removing states without incoming
  // edges.
  std::vector<uint32_t> into(count, 0);
  for (const auto& state : dfa.states) {
    for (const ByteEdge& edge : state.edges) ++into[edge.target];
  }
  std::vector<uint32_t> most(count, 0);
  std::vector<uint32_t> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (into[i] == 0) ready.push_back(i);
  }
  uint32_t longest = 0;
  for (size_t i = 0; i < ready.size(); ++i) {
    const uint32_t at = ready[i];
    if (dfa.states[at].final) longest = std::max(longest, most[at]);
    for (const ByteEdge& edge : dfa.states[at].edges) {
      most[edge.target] = std::max(most[edge.target], most[at] + (first(edge.low) ? 1 : 0));
      if (--into[edge.target] == 0) ready.push_back(edge.target);
    }
  }
  made.max = ready.size() == count ? longest : kUnbounded;
  return made;
}

}  // namespace gen::grammar
