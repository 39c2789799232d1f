// SPDX-License-Identifier: Apache-2.0
// Strings as automata, see string_dfa.h.
#include "grammar/schema/string_dfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "grammar/characters.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Characters of a range that lead to one state.
struct Way {
  uint32_t low;
  uint32_t high;
  uint32_t target;
  auto operator<=>(const Way&) const = default;
};

// What whole characters do from a state.
class Characters {
 public:
  explicit Characters(const Dfa& dfa) : dfa_(dfa) {}

  std::vector<Way> from(uint32_t state) {
    ways_.clear();
    for (const ByteEdge& edge : dfa_.states[state].edges) {
      const uint32_t low = edge.low;
      const uint32_t high = edge.high;
      part(low, high, 0x00, 0x7F, 0x7F, 0, edge.target);
      part(low, high, 0xC0, 0xDF, 0x1F, 1, edge.target);
      part(low, high, 0xE0, 0xEF, 0x0F, 2, edge.target);
      part(low, high, 0xF0, 0xF7, 0x07, 3, edge.target);
    }
    std::sort(ways_.begin(), ways_.end());
    std::vector<Way> joined;
    for (const Way& way : ways_) {
      if (!joined.empty() && joined.back().target == way.target &&
          joined.back().high + 1 == way.low) {
        joined.back().high = way.high;
      } else {
        joined.push_back(way);
      }
    }
    return joined;
  }

 private:
  void part(uint32_t low, uint32_t high, uint32_t first, uint32_t last, uint32_t bits, int tail,
            uint32_t target) {
    low = std::max(low, first);
    high = std::min(high, last);
    if (low <= high) walk(target, low & bits, high & bits, tail);
  }

  // Behind the beginnings `low` to `high` of characters, of which `tail` bytes are to come.
  void walk(uint32_t state, uint32_t low, uint32_t high, int tail) {
    if (tail == 0) {
      ways_.push_back({low, high, state});
      return;
    }
    for (const ByteEdge& edge : dfa_.states[state].edges) {
      const uint32_t from = edge.low & 0x3FU;
      const uint32_t to = edge.high & 0x3FU;
      if (from == 0 && to == 0x3F) {
        walk(edge.target, low << 6U, high << 6U | 0x3FU, tail - 1);
        continue;
      }
      for (uint32_t begin = low; begin <= high; ++begin) {
        walk(edge.target, begin << 6U | from, begin << 6U | to, tail - 1);
      }
    }
  }

  const Dfa& dfa_;
  std::vector<Way> ways_;
};

// Writes the automaton of texts.
class Texts {
 public:
  Texts(const Dfa& strings, const DfaFuel& fuel)
      : strings_(strings), characters_(strings), fuel_(fuel) {}

  Result<Dfa> run() {
    const uint32_t start = state();
    const uint32_t begin = border(0);
    made_.states[start].edges.push_back({'"', '"', begin});
    while (!open_.empty()) {
      const uint32_t at = open_.back();
      open_.pop_back();
      write(at);
      if (made_.states.size() > 8 * fuel_.states) {
        return error(Code::kGrammar, "strings take an automaton of more than %zu states",
                     8 * fuel_.states);
      }
    }
    for (Dfa::State& one : made_.states) tidy(&one.edges);
    return std::move(made_);
  }

 private:
  uint32_t state() {
    made_.states.emplace_back();
    return static_cast<uint32_t>(made_.states.size() - 1);
  }
  void edge(uint32_t from, uint32_t low, uint32_t high, uint32_t target) {
    made_.states[from].edges.push_back(
        {static_cast<uint8_t>(low), static_cast<uint8_t>(high), target});
  }

  // In order; neighbours that lead to one state become one.
  static void tidy(std::vector<ByteEdge>* edges) {
    std::sort(edges->begin(), edges->end(),
              [](const ByteEdge& a, const ByteEdge& b) { return a.low < b.low; });
    size_t kept = 0;
    for (size_t i = 1; i < edges->size(); ++i) {
      ByteEdge& last = (*edges)[kept];
      const ByteEdge& edge = (*edges)[i];
      if (last.target == edge.target && last.high + 1 == edge.low) {
        last.high = edge.high;
      } else {
        (*edges)[++kept] = edge;
      }
    }
    if (!edges->empty()) edges->resize(kept + 1);
  }

  // Between characters.
  uint32_t border(uint32_t of) {
    const auto [place, added] = borders_.try_emplace(of, 0);
    if (added) {
      place->second = state();
      open_.push_back(of);
    }
    return place->second;
  }

  // Inside the UTF-8 of a character: as in `strings_`.
  uint32_t inside(uint32_t of, int tail) {
    if (tail == 0) return border(of);
    const auto [place, added] = inside_.try_emplace({of, tail}, 0);
    if (!added) return place->second;
    const uint32_t made = place->second = state();
    for (const ByteEdge& way : strings_.states[of].edges) {
      edge(made, way.low, way.high, inside(way.target, tail - 1));
    }
    return made;
  }

  void raw(uint32_t from, const ByteEdge& way, uint32_t first, uint32_t last, int tail) {
    const uint32_t low = std::max<uint32_t>(way.low, first);
    const uint32_t high = std::min<uint32_t>(way.high, last);
    if (low <= high) edge(from, low, high, inside(way.target, tail));
  }

  void write(uint32_t of) {
    const uint32_t from = border(of);
    if (strings_.states[of].final) {
      if (end_ == kNone) {
        end_ = state();
        made_.states[end_].final = true;
      }
      edge(from, '"', '"', end_);
    }
    for (const ByteEdge& way : strings_.states[of].edges) {
      raw(from, way, 0x20, 0x21, 0);
      raw(from, way, 0x23, 0x5B, 0);
      raw(from, way, 0x5D, 0x7F, 0);
      raw(from, way, 0xC0, 0xDF, 1);
      raw(from, way, 0xE0, 0xEF, 2);
      raw(from, way, 0xF0, 0xF7, 3);
    }
    const std::vector<Way> ways = characters_.from(of);
    if (ways.empty()) return;
    const uint32_t escape = state();
    edge(from, '\\', '\\', escape);
    static constexpr std::string_view kFrom = "\"\\/bfnrt";
    static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    for (size_t i = 0; i < kFrom.size(); ++i) {
      const auto code = static_cast<uint32_t>(kTo[i]);
      for (const Way& way : ways) {
        if (way.low <= code && code <= way.high) {
          edge(escape, static_cast<uint8_t>(kFrom[i]), static_cast<uint8_t>(kFrom[i]),
               border(way.target));
        }
      }
    }
    edge(escape, 'u', 'u', units(ways));
  }

  // Four digits of the first unit.
  uint32_t units(const std::vector<Way>& ways) {
    std::vector<Way> small;
    std::map<uint32_t, std::vector<Way>> pairs;  // by first unit - 0xD800: of second units
    for (const Way& way : ways) {
      if (way.low <= 0xFFFF) {
        small.push_back({way.low, std::min<uint32_t>(way.high, 0xFFFF), border(way.target)});
      }
      if (way.high < 0x10000) continue;
      const uint32_t low = std::max<uint32_t>(way.low, 0x10000) - 0x10000;
      const uint32_t high = way.high - 0x10000;
      const uint32_t target = border(way.target);
      // First units of which all second ones lead there are a range.
      uint32_t first = low >> 10U;
      uint32_t last = high >> 10U;
      const auto partly = [&](uint32_t unit, uint32_t begin, uint32_t end) {
        pairs[unit].push_back({0xDC00 + begin, 0xDC00 + end, target});
      };
      if (first == last && ((low & 0x3FFU) != 0 || (high & 0x3FFU) != 0x3FF)) {
        partly(first, low & 0x3FFU, high & 0x3FFU);
        continue;
      }
      if ((low & 0x3FFU) != 0) partly(first++, low & 0x3FFU, 0x3FF);
      if ((high & 0x3FFU) != 0x3FF) partly(last--, 0, high & 0x3FFU);
      if (first > last) continue;
      const uint32_t any_second = second_unit({{0xDC00, 0xDFFF, target}});
      small.push_back({0xD800 + first, 0xD800 + last, any_second});
    }
    for (const auto& [unit, second] : pairs) {
      const uint32_t code = 0xD800 + unit;
      small.push_back({code, code, second_unit(second)});
    }
    std::sort(small.begin(), small.end());
    return digits(small, 4);
  }

  uint32_t second_unit(const std::vector<Way>& ways) {
    const auto [place, added] = seconds_.try_emplace(ways, 0);
    if (!added) return place->second;
    const uint32_t begin = place->second = state();
    const uint32_t escape = state();
    edge(begin, '\\', '\\', escape);
    edge(escape, 'u', 'u', digits(ways, 4));
    return begin;
  }

  // `count` hexadecimal digits; ways in order, apart, targets in made_.
  uint32_t digits(const std::vector<Way>& ways, int count) {
    if (count == 0) return ways[0].target;
    std::vector<Way> key = ways;
    key.push_back({static_cast<uint32_t>(count), 0, kNone});
    const auto [place, added] = digits_.try_emplace(key, 0);
    if (!added) return place->second;
    const uint32_t made = place->second = state();
    const uint32_t size = uint32_t{1} << (4U * static_cast<uint32_t>(count - 1));
    for (uint32_t digit = 0; digit < 16; ++digit) {
      const uint32_t low = digit * size;
      const uint32_t high = low + size - 1;
      std::vector<Way> below;
      for (const Way& way : ways) {
        if (way.high < low || way.low > high) continue;
        Way part = {std::max(way.low, low) - low, std::min(way.high, high) - low, way.target};
        if (!below.empty() && below.back().target == part.target &&
            below.back().high + 1 == part.low) {
          below.back().high = part.high;
        } else {
          below.push_back(part);
        }
      }
      if (below.empty()) continue;
      const uint32_t target = digits(below, count - 1);
      if (digit < 10) {
        edge(made, '0' + digit, '0' + digit, target);
      } else {
        edge(made, 'A' + digit - 10, 'A' + digit - 10, target);
        edge(made, 'a' + digit - 10, 'a' + digit - 10, target);
      }
    }
    return made;
  }

  const Dfa& strings_;
  Characters characters_;
  const DfaFuel fuel_;
  Dfa made_;
  uint32_t end_ = kNone;
  std::vector<uint32_t> open_;
  std::map<uint32_t, uint32_t> borders_;
  std::map<std::pair<uint32_t, int>, uint32_t> inside_;
  std::map<std::vector<Way>, uint32_t> seconds_;
  std::map<std::vector<Way>, uint32_t> digits_;
};

struct Utf8 {
  // A state behind a whole character that leads `first` (a state) there.
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

Dfa string_set(std::span<const std::string> strings) {
  std::vector<std::map<uint8_t, uint32_t>> nodes(1);
  std::vector<bool> final = {false};
  for (const std::string& string : strings) {
    uint32_t at = 0;
    for (const char c : string) {
      const auto next = static_cast<uint32_t>(nodes.size());
      const auto [place, added] = nodes[at].try_emplace(static_cast<uint8_t>(c), next);
      const uint32_t target = place->second;
      if (added) {
        nodes.emplace_back();
        final.push_back(false);
      }
      at = target;
    }
    final[at] = true;
  }
  Dfa made;
  made.states.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    made.states[i].final = final[i];
    for (const auto& [byte, target] : nodes[i])
      made.states[i].edges.push_back({byte, byte, target});
  }
  return minimise(made);
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
  // Every state leads to an end, so a walk longer than the states goes round and round.
  struct Open {
    uint32_t state;
    std::string text;
  };
  std::vector<Open> open = {{0, ""}};
  while (!open.empty()) {
    const Open now = std::move(open.back());
    open.pop_back();
    if (now.text.size() > dfa.states.size()) return false;
    if (dfa.states[now.state].final) out->push_back(now.text);
    for (const ByteEdge& edge : dfa.states[now.state].edges) {
      if (open.size() + out->size() + (edge.high - edge.low) > most) return false;
      for (uint32_t byte = edge.low; byte <= edge.high; ++byte) {
        open.push_back({edge.target, now.text + static_cast<char>(byte)});
      }
    }
  }
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
  // The longest way, unless there is a ring: found by taking away states without ways into them.
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

Result<Dfa> json_texts(const Dfa& strings, const DfaFuel& fuel) {
  if (strings.empty()) return Dfa();
  return Texts(strings, fuel).run();
}

ExprId json_character(Expressions& to) {
  CharSet raw;
  raw.add(0x20, 0x21);
  raw.add(0x23, 0x5B);
  raw.add(0x5D, kLastCharacter);
  const auto bytes = [&](std::string_view list) {
    ByteSet set;
    for (const char c : list) set.add(static_cast<uint8_t>(c));
    return to.bytes(set);
  };
  const auto all = [&](std::initializer_list<ExprId> parts) {
    return to.sequence(std::span(parts.begin(), parts.size()));
  };
  const auto any = [&](std::initializer_list<ExprId> parts) {
    return to.choice(std::span(parts.begin(), parts.size()));
  };
  const ExprId hex = bytes("0123456789abcdefABCDEF");
  const ExprId d = bytes("dD");
  // A first unit of a pair is only right before a second one.
  const ExprId other =
      any({all({bytes("0123456789abcefABCEF"), hex}), all({d, bytes("01234567")})});
  const ExprId single = all({bytes("u"), other, hex, hex});
  const ExprId pair = all({bytes("u"), d, bytes("89abAB"), hex, hex, bytes("\\"), bytes("u"), d,
                           bytes("cdefCDEF"), hex, hex});
  return any({characters(to, raw), all({bytes("\\"), any({bytes("\"\\/bfnrt"), single, pair})})});
}

}  // namespace gen::grammar
