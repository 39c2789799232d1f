// SPDX-License-Identifier: Apache-2.0
// Strings as JSON texts, see string_texts.h.
#include "grammar/schema/string_texts.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "grammar/expression/characters.h"
#include "grammar/base/hash.h"
#include "grammar/base/list_table.h"
#include "grammar/schema/character_edges.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNoText = UINT32_MAX;
constexpr uint64_t kWorkPerNode = 32;
// A node with more targets than this has its own digits for escapes: otherwise many rules would be
// followed in parallel.
constexpr size_t kMaxRules = 4;
// Characters from here on mostly have the same target: their escapes are one rule that others call.
constexpr uint32_t kFirstOther = 0x80;

// Single-letter escapes and their meanings.
constexpr std::string_view kEscapeLetters = "\"\\/bfnrt";
constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";

// Lower characters must be escaped in JSON.
constexpr uint32_t kFirstRaw = 0x20;
constexpr bool must_be_escaped(uint32_t code) {
  return code < kFirstRaw || code == '"' || code == '\\';
}
constexpr bool has_letter(uint32_t code) {
  return code < 0x80 && kMeant.find(static_cast<char>(code)) != std::string_view::npos;
}

struct MixEdge {
  uint64_t operator()(uint64_t hash, const CharacterEdge& range) const noexcept {
    return mix(hash, mix(static_cast<uint64_t>(range.low) << 32U | range.high, range.target));
  }
};

// Nodes indexed by transitions and an additional word.
class WayTable {
 public:
  // The slot for the node of these transitions, and whether it is new. Invalidated by later
  // insertions.
  std::pair<uint32_t*, bool> node_of(const CharacterEdges& edges, uint32_t beside = 0) {
    const auto [number, added] = known_.number_of(edges, beside);
    if (added) nodes_.push_back(0);
    return {&nodes_[number], added};
  }

 private:
  ListTable<CharacterEdge, MixEdge> known_;
  std::vector<uint32_t> nodes_;
};

// The transitions of a state on whole characters.
class Characters {
 public:
  explicit Characters(const Dfa& dfa) : dfa_(dfa) {}

  // Valid until the next call.
  const CharacterEdges& from(uint32_t state) {
    outgoing_.clear();
    for (const ByteEdge& edge : dfa_.states[state].edges) {
      const uint32_t low = edge.low;
      const uint32_t high = edge.high;
      part(low, high, 0x00, 0x7F, 0x7F, 0, edge.target);
      part(low, high, 0xC0, 0xDF, 0x1F, 1, edge.target);
      part(low, high, 0xE0, 0xEF, 0x0F, 2, edge.target);
      part(low, high, 0xF0, 0xF7, 0x07, 3, edge.target);
    }
    std::sort(outgoing_.begin(), outgoing_.end());
    size_t kept = 0;
    for (const CharacterEdge& range : outgoing_) {
      if (kept > 0 && outgoing_[kept - 1].target == range.target &&
          outgoing_[kept - 1].high + 1 == range.low) {
        outgoing_[kept - 1].high = range.high;
      } else {
        outgoing_[kept++] = range;
      }
    }
    outgoing_.resize(kept);
    return outgoing_;
  }

 private:
  void part(uint32_t low, uint32_t high, uint32_t first, uint32_t last, uint32_t bits, int tail,
            uint32_t target) {
    low = std::max(low, first);
    high = std::min(high, last);
    if (low <= high) walk(target, low & bits, high & bits, tail);
  }

  // After the partial characters `low` to `high`, of which `tail` bytes are missing.
  void walk(uint32_t state, uint32_t low, uint32_t high, int tail) {
    if (tail == 0) {
      outgoing_.push_back({low, high, state});
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
  CharacterEdges outgoing_;
};

// The texts under construction.
class TextGraph {
 public:
  uint32_t node(bool counted = false) {
    final_.push_back(false);
    if (counted) {
      counted_.resize(final_.size(), false);
      counted_.back() = true;
    }
    return static_cast<uint32_t>(final_.size() - 1);
  }
  void edge(uint32_t from, uint32_t low, uint32_t high, uint32_t target) {
    edges_.push_back({from, target, static_cast<uint8_t>(low), static_cast<uint8_t>(high)});
  }
  void call(uint32_t from, ExprId rule, uint32_t target) { calls_.push_back({from, target, rule}); }
  void end(uint32_t node) { final_[node] = true; }
  [[nodiscard]] size_t size() const { return final_.size(); }

  // Adds escapes after a backslash at `from`; transitions are sorted and disjoint.
  void escapes(uint32_t from, const CharacterEdges& edges) {
    letters(from, edges);
    edge(from, 'u', 'u', units(edges));
  }

  // The same; `escaped` are transitions on single characters that must be escaped.
  void plain_escapes(uint32_t from, const CharacterEdges& escaped) {
    letters(from, escaped);
    CharacterEdges others = escaped;
    std::erase_if(others, [](const CharacterEdge& range) { return has_letter(range.low); });
    if (!others.empty()) edge(from, 'u', 'u', units(others));
  }

  ExprId expression(Expressions& to) && {
    Diagram diagram;
    if (!counted_.empty()) counted_.resize(final_.size(), false);
    diagram.final = std::move(final_);
    diagram.counted = std::move(counted_);
    diagram.transitions = std::move(calls_);
    // By their sources.
    std::vector<uint32_t> begins(diagram.final.size() + 1, 0);
    for (const Edge& edge : edges_) ++begins[edge.from + 1];
    for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    std::vector<Edge> sorted(edges_.size());
    std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
    for (const Edge& edge : edges_) sorted[next[edge.from]++] = edge;
    std::vector<std::pair<uint32_t, ByteSet>> sets;  // by target
    for (uint32_t from = 0; from < diagram.final.size(); ++from) {
      sets.clear();
      for (uint32_t i = begins[from]; i < begins[from + 1]; ++i) {
        const Edge& edge = sorted[i];
        auto place = std::find_if(sets.begin(), sets.end(),
                                  [&](const auto& one) { return one.first == edge.to; });
        if (place == sets.end()) place = sets.insert(sets.end(), {edge.to, ByteSet()});
        place->second.add(ByteSet::range(edge.low, edge.high));
      }
      for (const auto& [target, set] : sets)
        diagram.transitions.push_back({from, target, to.bytes(set)});
    }
    return to.diagram(std::move(diagram));
  }

 private:
  struct Edge {
    uint32_t from;
    uint32_t to;
    uint8_t low;
    uint8_t high;
  };

  void letters(uint32_t from, const CharacterEdges& edges) {
    for (size_t i = 0; i < kEscapeLetters.size(); ++i) {
      const auto code = static_cast<uint32_t>(kMeant[i]);
      for (const CharacterEdge& range : edges) {
        const auto byte = static_cast<uint8_t>(kEscapeLetters[i]);
        if (range.low <= code && code <= range.high) edge(from, byte, byte, range.target);
      }
    }
  }

  // The four digits of the first unit.
  uint32_t units(const CharacterEdges& edges) {
    CharacterEdges small;
    std::map<uint32_t, CharacterEdges>
        pairs;  // by first unit - 0xD800: transitions on second units
    for (const CharacterEdge& range : edges) {
      if (range.low <= 0xFFFF) {
        small.push_back({range.low, std::min<uint32_t>(range.high, 0xFFFF), range.target});
      }
      if (range.high < 0x10000) continue;
      const uint32_t low = std::max<uint32_t>(range.low, 0x10000) - 0x10000;
      const uint32_t high = range.high - 0x10000;
      const uint32_t target = range.target;
      // First units all of whose second units have this target form a range.
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

  uint32_t second_unit(const CharacterEdges& edges) {
    const auto [known, added] = seconds_.node_of(edges);
    if (!added) return *known;
    const uint32_t begin = *known = node();
    const uint32_t escape = node();
    edge(begin, '\\', '\\', escape);
    edge(escape, 'u', 'u', digits(edges, 4));
    return begin;
  }

  // Any `count` hexadecimal digits.
  uint32_t any_digits(uint32_t target, int count) {
    if (count == 0) return target;
    const auto [place, added] = any_digits_.try_emplace({target, count}, 0);
    if (!added) return place->second;
    const uint32_t made = place->second = node();
    const uint32_t next = any_digits(target, count - 1);
    edge(made, '0', '9', next);
    edge(made, 'A', 'F', next);
    edge(made, 'a', 'f', next);
    return made;
  }

  // `count` hexadecimal digits; transitions are sorted and disjoint.
  uint32_t digits(const CharacterEdges& edges, int count) {
    if (count == 0) return edges[0].target;
    const auto [known, added] = digits_.node_of(edges, static_cast<uint32_t>(count));
    if (!added) return *known;
    const uint32_t made = *known = node();
    const uint32_t size = uint32_t{1} << (4U * static_cast<uint32_t>(count - 1));
    CharacterEdges& below = below_[static_cast<size_t>(count)];
    for (uint32_t digit = 0; digit < 16; ++digit) {
      slice(edges, digit * size, digit * size + size - 1, &below);
      if (below.empty()) continue;
      const bool all = below[0].low == 0 && below[0].high == size - 1;
      const uint32_t target =
          all ? any_digits(below[0].target, count - 1) : digits(below, count - 1);
      if (digit < 10) {
        edge(made, '0' + digit, '0' + digit, target);
      } else {
        edge(made, 'A' + digit - 10, 'A' + digit - 10, target);
        edge(made, 'a' + digit - 10, 'a' + digit - 10, target);
      }
    }
    return made;
  }

  std::vector<bool> final_;    // by node
  std::vector<bool> counted_;  // by node; empty if none is
  std::vector<Edge> edges_;
  std::vector<Diagram::Transition> calls_;
  WayTable seconds_;
  WayTable digits_;
  std::array<CharacterEdges, 5> below_;                      // by number of missing digits
  std::map<std::pair<uint32_t, int>, uint32_t> any_digits_;  // by target and count
};

// Builds the texts of an automaton's strings.
class Texts {
 public:
  // `counted`: counted nodes are those between characters.
  Texts(const Dfa& strings, bool quoted, bool counted, StringTexts* rules)
      : strings_(strings),
        characters_(strings),
        quoted_(quoted),
        counted_(counted),
        rules_(*rules),
        borders_(strings.states.size(), kNoText),
        inside_(strings.states.size() * (kLongestTail + 1), kNoText) {}

  // False if that takes more than `most` nodes.
  bool run(size_t most) {
    if (quoted_) {
      const uint32_t start = graph_.node();
      end_ = graph_.node();
      graph_.end(end_);
      graph_.edge(start, '"', '"', border(0));
    } else {
      border(0);
    }
    while (!open_.empty()) {
      const uint32_t at = open_.back();
      open_.pop_back();
      write(at);
      const size_t more = graph_.size() - told_;
      told_ = graph_.size();
      const uint64_t work = kWorkPerNode * (1 + more) + n_looked_at_;
      n_looked_at_ = 0;
      if (graph_.size() > most || !goes_on(rules_.building(), work)) return false;
    }
    return true;
  }

  ExprId expression(Expressions& to) && { return std::move(graph_).expression(to); }

 private:
  // Between characters.
  uint32_t border(uint32_t of) {
    if (borders_[of] == kNoText) {
      borders_[of] = graph_.node(counted_);
      open_.push_back(of);
    }
    return borders_[of];
  }

  // Inside the UTF-8 of a character, as in `strings_`.
  uint32_t inside(uint32_t of, int tail) {
    if (tail == 0) return border(of);
    uint32_t& known = inside_[size_t{of} * (kLongestTail + 1) + static_cast<size_t>(tail)];
    if (known != kNoText) return known;
    const uint32_t made = known = graph_.node();
    for (const ByteEdge& range : strings_.states[of].edges) {
      graph_.edge(made, range.low, range.high, inside(range.target, tail - 1));
    }
    return made;
  }

  void raw(uint32_t from, const ByteEdge& range, uint32_t first, uint32_t last, int tail) {
    const uint32_t low = std::max<uint32_t>(range.low, first);
    const uint32_t high = std::min<uint32_t>(range.high, last);
    if (low <= high) graph_.edge(from, low, high, inside(range.target, tail));
  }

  void write(uint32_t of) {
    const uint32_t from = border(of);
    if (strings_.states[of].final) {
      if (quoted_) {
        graph_.edge(from, '"', '"', end_);
      } else {
        graph_.end(from);
      }
    }
    for (const ByteEdge& range : strings_.states[of].edges) {
      raw(from, range, 0x20, 0x21, 0);
      raw(from, range, 0x23, 0x5B, 0);
      raw(from, range, 0x5D, 0x7F, 0);
      raw(from, range, 0xC0, 0xDF, 1);
      raw(from, range, 0xE0, 0xEF, 2);
      raw(from, range, 0xF0, 0xF7, 3);
    }
    const CharacterEdges& all = characters_.from(of);
    n_looked_at_ += all.size();
    const CharacterEdges& edges = rules_.plain() ? needed(all) : all;
    if (edges.empty()) return;
    const auto [known, added] = escapes_.node_of(edges);
    if (added) *known = escape(edges);
    graph_.edge(from, '\\', '\\', *known);
  }

  // Characters that must be escaped individually. Control characters without a letter escape are
  // left out where many other characters have the same target: a model that writes \u means
  // something else.
  const CharacterEdges& needed(const CharacterEdges& edges) {
    constexpr uint32_t kManyOthers = 32;
    needed_.clear();
    if (edges.empty() || edges[0].low > '\\') return needed_;
    others_.clear();
    for (const CharacterEdge& range : edges) {
      if (range.high < kFirstRaw) continue;
      others_[range.target] += range.high - std::max(range.low, kFirstRaw) + 1;
    }
    for (const CharacterEdge& range : edges) {
      if (range.low > '\\') break;
      const uint32_t others = others_[range.target];
      for (uint32_t code = range.low; code <= std::min<uint32_t>(range.high, '\\'); ++code) {
        if (!must_be_escaped(code) || (others >= kManyOthers && !has_letter(code))) continue;
        needed_.push_back({code, code, range.target});
      }
    }
    return needed_;
  }

  // A node after a backslash.
  uint32_t escape(const CharacterEdges& edges) {
    const uint32_t made = graph_.node();
    if (rules_.plain()) {
      there_ = edges;
      for (CharacterEdge& range : there_) range.target = border(range.target);
      graph_.plain_escapes(made, there_);
      return made;
    }
    targets_.clear();
    for (const CharacterEdge& range : edges) {
      if (std::find(targets_.begin(), targets_.end(), range.target) != targets_.end()) continue;
      targets_.push_back(range.target);
      if (targets_.size() > kMaxRules) break;
    }
    if (targets_.size() > kMaxRules) {
      there_ = edges;
      for (CharacterEdge& range : there_) range.target = border(range.target);
      graph_.escapes(made, there_);
      return made;
    }
    for (const uint32_t target : targets_) {
      ranges_.clear();
      for (const CharacterEdge& range : edges) {
        if (range.target == target) ranges_.emplace_back(range.low, range.high);
      }
      graph_.call(made, rules_.escapes_of(ranges_), border(target));
    }
    return made;
  }

  const Dfa& strings_;
  Characters characters_;
  const bool quoted_;
  const bool counted_;
  StringTexts& rules_;
  TextGraph graph_;
  size_t told_ = 0;         // nodes already counted as work
  size_t n_looked_at_ = 0;  // transitions that are not
  uint32_t end_ = kNoText;
  std::vector<uint32_t> open_;
  std::vector<uint32_t> borders_;
  static constexpr int kLongestTail = 3;  // bytes after the first one of a character
  std::vector<uint32_t> inside_;          // by state and tail
  WayTable escapes_;
  // Buffers of escape(), kept for their memory.
  std::vector<uint32_t> targets_;
  CharacterRanges ranges_;
  CharacterEdges there_;
  CharacterEdges needed_;
  std::unordered_map<uint32_t, uint32_t> others_;  // by target: characters that are not controls
};

ExprId letter_of(Expressions& to, uint32_t code) {
  const size_t letter = kMeant.find(static_cast<char>(code));
  return to.bytes(ByteSet::one(static_cast<uint8_t>(kEscapeLetters[letter])));
}

// The escapes of one character of one unit.
ExprId escapes_of_one(Expressions& to, uint32_t code) {
  std::vector<ExprId> parts = {to.bytes(ByteSet::one('u'))};
  for (int shift = 12; shift >= 0; shift -= 4) {
    const char digit = "0123456789abcdef"[code >> static_cast<uint32_t>(shift) & 0xFU];
    ByteSet both = ByteSet::one(static_cast<uint8_t>(digit));
    if (digit >= 'a') both.add(static_cast<uint8_t>(digit - 'a' + 'A'));
    parts.push_back(to.bytes(both));
  }
  std::vector<ExprId> choices = {to.sequence(parts)};
  if (has_letter(code)) choices.push_back(letter_of(to, code));
  return to.choice(choices);
}

}  // namespace

ExprId StringTexts::escapes_of(const CharacterRanges& ranges) {
  const auto [place, added] = escapes_.try_emplace(ranges, 0);
  if (!added) return place->second;
  const RuleId rule = to_.add_rule(true);
  place->second = to_.rule(rule);
  if (ranges.size() == 1 && ranges[0].first == ranges[0].second && ranges[0].first <= 0xFFFF) {
    to_.define(rule, escapes_of_one(to_, ranges[0].first));
    return place->second;
  }
  TextGraph graph;
  const uint32_t start = graph.node();
  const uint32_t end = graph.node();
  graph.end(end);
  CharacterEdges edges;
  CharacterRanges others;
  for (const auto& [low, high] : ranges) {
    if (low < kFirstOther) edges.push_back({low, std::min(high, kFirstOther - 1), end});
    if (high >= kFirstOther) others.emplace_back(std::max(low, kFirstOther), high);
  }
  if (edges.empty()) {
    for (const auto& [low, high] : others) edges.push_back({low, high, end});
  } else if (!others.empty()) {
    graph.call(start, escapes_of(others), end);
  }
  graph.escapes(start, edges);
  const ExprId made = place->second;  // a rule
  to_.define(rule, std::move(graph).expression(to_));
  return made;
}

ExprId StringTexts::character(uint32_t code, std::string_view bytes) {
  ExprId& known = characters_[code];
  if (known != 0) return known;
  if (plain_ && !must_be_escaped(code)) return known = to_.literal(bytes);
  const std::array<ExprId, 2> escaped = {
      to_.bytes(ByteSet::one('\\')),
      plain_ && has_letter(code) ? letter_of(to_, code) : escapes_of({{code, code}})};
  std::vector<ExprId> choices = {to_.sequence(escaped)};
  if (!must_be_escaped(code)) choices.push_back(to_.literal(bytes));
  return known = to_.choice(choices);
}

ExprId StringTexts::texts_of(std::string_view string) {
  // A diagram, because one with many users is called.
  Diagram diagram;
  const auto go_on = [&](ExprId reads) {
    const auto from = static_cast<uint32_t>(diagram.transitions.size());
    diagram.transitions.push_back({from, from + 1, reads});
  };
  const ExprId quote = to_.bytes(ByteSet::one('"'));
  go_on(quote);
  for (size_t i = 0; i < string.size();) {
    const size_t begin = i;
    const uint32_t code = utf8_next(string, &i);
    go_on(character(code, string.substr(begin, i - begin)));
  }
  go_on(quote);
  diagram.final.resize(diagram.transitions.size() + 1);
  diagram.final.back() = true;
  return to_.diagram(std::move(diagram));
}

Result<ExprId> StringTexts::texts_of(const Dfa& strings, const DfaFuel& fuel, uint32_t most) {
  GEN_ASSIGN(const ExprId texts, write(strings, true, most != kUnbounded, fuel));
  // The position after the first quote counts as between characters, too.
  return most == kUnbounded ? texts : to_.limited(texts, most + 1);
}

Result<ExprId> StringTexts::parts_of(const Dfa& strings, const DfaFuel& fuel) {
  return write(strings, false, false, fuel);
}

Result<ExprId> StringTexts::write(const Dfa& strings, bool quoted, bool counted,
                                  const DfaFuel& fuel) {
  if (strings.empty()) return Expressions::kNever;
  Texts texts(strings, quoted, counted, this);
  if (!texts.run(8 * fuel.states)) {
    if (fuel.building != nullptr) GEN_TRY(fuel.building->status());
    return error(Code::kGrammar, "strings take an automaton of more than %zu states",
                 8 * fuel.states);
  }
  return std::move(texts).expression(to_);
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
  // The first unit of a pair is valid only before a second one.
  const ExprId other =
      any({all({bytes("0123456789abcefABCEF"), hex}), all({d, bytes("01234567")})});
  const ExprId single = all({bytes("u"), other, hex, hex});
  const ExprId pair = all({bytes("u"), d, bytes("89abAB"), hex, hex, bytes("\\"), bytes("u"), d,
                           bytes("cdefCDEF"), hex, hex});
  return any({characters(to, raw), all({bytes("\\"), any({bytes("\"\\/bfnrt"), single, pair})})});
}

}  // namespace gen::grammar
