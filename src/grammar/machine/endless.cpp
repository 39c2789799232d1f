// SPDX-License-Identifier: Apache-2.0
// See endless.h. A value can grow where its automaton has a cycle: of letters (except e), which
// only strings have; or of digits from 1 to 9, in a number before its exponent or in the exponent
// of a non-zero number. The kind of the current number is tracked along with the states.
#include "grammar/machine/endless.h"

#include <algorithm>
#include <array>

#include "grammar/machine/machines.h"
#include "grammar/machine/recogniser.h"

namespace gen::grammar {
namespace {

using Number = JsonReader::Number;

// Values of JsonReader::Number, and after a call: number or not.
enum : uint8_t { kNone, kZero, kOther, kZeroE, kOtherE, kUnknown, kNumbers };
static_assert(static_cast<int>(Number::kOtherWithExponent) == kOtherE);

enum Class : uint8_t { kDigit0, kDigit, kE, kPoint, kSign, kElse, kClasses };

constexpr uint8_t kNext[kNumbers][kClasses] = {
    {kZero, kOther, kNone, kNone, kNone, kNone},
    {kZero, kOther, kZeroE, kZero, kZero, kNone},
    {kOther, kOther, kOtherE, kOther, kOther, kNone},
    {kZeroE, kZeroE, kZeroE, kZeroE, kZeroE, kNone},
    {kOtherE, kOtherE, kOtherE, kOtherE, kOtherE, kNone},
    {kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, kNone},
};

constexpr uint32_t kRoomLeft = 4;           // for a bounded loop: letters that must remain free
constexpr uint32_t kManyTaken = 1'000'000;  // less than the number of texts of that many letters

bool covers(const ByteEdge& edge, int low, int high) {
  return edge.low <= high && edge.high >= low;
}

bool covers_letters(const ByteEdge& edge) {
  return covers(edge, 'a', 'd') || covers(edge, 'f', 'z') || covers(edge, 'A', 'D') ||
         covers(edge, 'F', 'Z');
}

uint32_t classes_of(const ByteEdge& edge) {
  uint32_t classes = 0;
  const auto add = [&](Class one, int low, int high) {
    if (covers(edge, low, high)) classes |= 1U << one;
  };
  add(kDigit0, '0', '0');
  add(kDigit, '1', '9');
  add(kE, 'e', 'e');
  add(kE, 'E', 'E');
  add(kPoint, '.', '.');
  add(kSign, '+', '+');
  add(kSign, '-', '-');
  // All bytes except those that end a value or a part of it: , ] }
  const std::array<std::array<int, 2>, 10> others = {{{0, '*'},
                                                      {'/', '/'},
                                                      {':', 'D'},
                                                      {'F', '\\'},
                                                      {'^', 'd'},
                                                      {'f', '|'},
                                                      {'~', 0x7F},
                                                      {0x80, 0xBF},
                                                      {0xC0, 0xF7},
                                                      {0xF8, kFirstSignal - 1}}};
  for (const auto& [low, high] : others) add(kElse, low, high);
  return classes;
}

// States on cycles of edges for which `on` is true.
template <typename On>
std::vector<bool> on_rings(const Machines& machines, uint32_t n_states, On on) {
  // Tarjan's algorithm, without recursion.
  constexpr uint32_t kNew = UINT32_MAX;
  std::vector<bool> ring(n_states, false);
  std::vector<uint32_t> number(n_states, kNew);
  std::vector<uint32_t> low(n_states, 0);
  std::vector<bool> open(n_states, false);
  std::vector<StateId> stack;
  struct SearchFrame {
    StateId state;
    size_t edge;  // the next to follow
  };
  std::vector<SearchFrame> path;
  uint32_t count = 0;
  const auto enter = [&](StateId state) {
    number[state] = low[state] = count++;
    open[state] = true;
    stack.push_back(state);
    path.push_back({state, 0});
  };
  for (StateId first = kFirstState; first < n_states; ++first) {
    if (number[first] != kNew) continue;
    enter(first);
    while (!path.empty()) {
      SearchFrame& frame = path.back();
      const auto edges = machines.bytes(frame.state);
      if (frame.edge < edges.size()) {
        const ByteEdge& edge = edges[frame.edge++];
        if (!on(edge)) continue;
        if (edge.target == frame.state) ring[frame.state] = true;
        if (number[edge.target] == kNew) {
          enter(edge.target);
        } else if (open[edge.target]) {
          low[frame.state] = std::min(low[frame.state], number[edge.target]);
        }
        continue;
      }
      const StateId state = frame.state;
      path.pop_back();
      if (!path.empty()) {
        low[path.back().state] = std::min(low[path.back().state], low[state]);
      }
      if (low[state] != number[state]) continue;
      const bool several = stack.back() != state;
      for (bool last = false; !last;) {
        const StateId top = stack.back();
        stack.pop_back();
        open[top] = false;
        if (several) ring[top] = true;
        last = top == state;
      }
    }
  }
  return ring;
}

// Propagates a property backwards along the edges.
class Spread {
 public:
  explicit Spread(size_t n_nodes) : last_into_(n_nodes, kNo), true_(n_nodes, false) {}
  void edge(uint32_t from, uint32_t to) {
    edges_.push_back({from, last_into_[to]});
    last_into_[to] = static_cast<uint32_t>(edges_.size()) - 1;
  }
  void set(uint32_t node) {
    if (true_[node]) return;
    true_[node] = true;
    open_.push_back(node);
  }
  void run() {
    while (!open_.empty()) {
      const uint32_t node = open_.back();
      open_.pop_back();
      for (uint32_t i = last_into_[node]; i != kNo; i = edges_[i].next) set(edges_[i].from);
    }
  }
  [[nodiscard]] bool is(uint32_t node) const { return true_[node]; }

 private:
  static constexpr uint32_t kNo = UINT32_MAX;
  struct Edge {
    uint32_t from;
    uint32_t next;
  };
  std::vector<Edge> edges_;
  std::vector<uint32_t> last_into_;
  std::vector<bool> true_;
  std::vector<uint32_t> open_;
};

// Whether the machine reads any single one of fifty letters.
bool reads_letters(const Machines& machines, uint32_t machine) {
  int letters = 0;
  for (const ByteEdge& edge : machines.bytes(machines.starts[machine])) {
    if (!machines.states[edge.target].final) continue;
    for (int c = edge.low; c <= edge.high; ++c) {
      letters += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? 1 : 0;
    }
  }
  return letters >= 50;
}

}  // namespace

Endless find_endless(const Machines& machines) {
  const auto n_states = static_cast<uint32_t>(machines.states.size()) - 1;
  Endless made;
  const bool watched =
      std::any_of(machines.byte_edges.begin(), machines.byte_edges.end(),
                  [](const ByteEdge& edge) { return covers(edge, kDiffers, kDiffers); });
  if (!watched) return made;  // not needed
  made.states.assign(n_states, 0);
  for (const Loop& loop : machines.loops) {
    made.of_characters.push_back(loop.members == 0 && !made.of_characters.empty() &&
                                 reads_letters(machines, loop.machine));
  }
  const auto letters = on_rings(machines, n_states, covers_letters);
  const auto digits =
      on_rings(machines, n_states, [](const ByteEdge& edge) { return covers(edge, '1', '9'); });
  Spread spread(size_t{n_states} * kNumbers);
  for (StateId s = kFirstState; s < n_states; ++s) {
    const uint32_t from = s * kNumbers;
    for (const ByteEdge& edge : machines.bytes(s)) {
      const uint32_t classes = classes_of(edge);
      for (uint32_t n = 0; n < kNumbers; ++n) {
        uint32_t to = 0;  // a set
        for (uint32_t c = 0; c < kClasses; ++c) {
          if ((classes >> c & 1U) != 0) to |= 1U << kNext[n][c];
        }
        for (uint32_t m = 0; m < kNumbers; ++m) {
          if ((to >> m & 1U) != 0) spread.edge(from + n, edge.target * kNumbers + m);
        }
      }
    }
    for (const CallEdge& edge : machines.calls(s)) {
      const bool members = machines.loops[edge.loop].members != 0;
      const bool characters = edge.loop != 0 && made.of_characters[edge.loop] &&
                              machines.loops[edge.loop].max == kUnbounded;
      for (uint32_t n = 0; n < kNumbers; ++n) {
        if (characters) spread.set(from + n);
        if (!members) spread.edge(from + n, machines.starts[edge.machine] * kNumbers + n);
        spread.edge(from + n, edge.target * kNumbers + kUnknown);
      }
    }
    if (machines.states[s].limit >= Limit::kLimited) continue;  // a limited cycle ends
    if (letters[s]) spread.set(from + kNone);
    if (digits[s]) spread.set(from + kOther);
    if (digits[s]) spread.set(from + kOtherE);
  }
  spread.run();
  for (StateId s = kFirstState; s < n_states; ++s) {
    for (uint32_t n = 0; n < kUnknown; ++n) {
      if (spread.is(s * kNumbers + n)) made.states[s] |= static_cast<uint8_t>(1U << n);
    }
  }
  // The states that are not closed: those that lead to a state without the property. Escapes may be
  // calls; they are examined where they occur.
  Spread open(n_states);
  for (StateId s = kFirstState; s < n_states; ++s) {
    if ((made.states[s] & 1U) == 0 || !machines.calls(s).empty()) open.set(s);
    for (const ByteEdge& edge : machines.bytes(s)) {
      const bool leaves = edge.low == edge.high && (edge.low == '"' || edge.low == '\\');
      if (!leaves) open.edge(s, edge.target);
    }
  }
  open.run();
  for (StateId s = kFirstState; s < n_states; ++s) {
    if (!open.is(s)) made.states[s] |= Endless::kClosed;
  }
  return made;
}

bool Endless::from(const Machines& machines, const ReturnLists& lists, const Item* items,
                   size_t n_items, JsonReader::Number number, uint32_t n_taken) const noexcept {
  const auto bit = static_cast<uint8_t>(1U << static_cast<unsigned>(number));
  return std::any_of(items, items + n_items, [&](const Item& item) {
    if ((states[item.state] & bit) != 0) return true;
    for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
      const Frame& frame = lists.at(id);
      if (!of_characters[frame.loop]) continue;
      const Loop& loop = machines.loops[frame.loop];
      if (loop.max == kUnbounded) return true;
      if (n_taken < kManyTaken && loop.max - frame.low > kRoomLeft) return true;
    }
    return false;
  });
}

uint32_t Endless::room(const Machines& machines, const ReturnLists& lists, const Item* items,
                       size_t n_items, uint32_t n_taken) const noexcept {
  uint32_t least = kUnbounded;
  for (size_t i = 0; i < n_items; ++i) {
    const StateId state = items[i].state;
    if ((states[state] & kClosed) != 0) continue;
    const auto edges = machines.bytes(state);
    const bool ends = std::all_of(edges.begin(), edges.end(), [](const ByteEdge& edge) {
      return edge.low == '"' && edge.high == '"';
    });
    if (ends) continue;
    uint32_t here = 0;
    for (ListId id = items[i].list; id != kNoFrame; id = lists.at(id).next) {
      const Frame& frame = lists.at(id);
      if (!of_characters[frame.loop]) continue;
      const Loop& loop = machines.loops[frame.loop];
      if (loop.max == kUnbounded) {
        here = kUnbounded;
      } else if (n_taken < kManyTaken && loop.max - frame.low > kRoomLeft) {
        here = std::max(here, loop.max - frame.low - kRoomLeft - 1);
      }
    }
    least = std::min(least, here);
  }
  return least;
}

}  // namespace gen::grammar
