// SPDX-License-Identifier: Apache-2.0
// The parts of patterns between groups, see pattern_pieces.h. The automata are constructed
// directly, so that they need no determinisation: a class stores its last character as far as a
// range needs it.
#include "grammar/schema/pattern_pieces.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/expression/characters.h"
#include "grammar/schema/character_edges.h"
#include "grammar/schema/string_dfa.h"
#include "grammar/regex/unicode_sets_data.h"

namespace gen::grammar {
namespace {

constexpr std::string_view kSyntax = "^$\\.*+?()[]{}|/";
constexpr uint32_t kNoTarget = UINT32_MAX;

// Resolution of characters in ranges: each of ASCII, then 16 at a time, then by the first byte of
// their UTF-8.
std::vector<uint32_t> bucket_starts() {
  std::vector<uint32_t> starts;
  for (uint32_t c = 0; c < 0x80; ++c) starts.push_back(c);
  for (uint32_t c = 0x80; c < 0x800; c += 16) starts.push_back(c);
  starts.push_back(0x800);
  for (uint32_t c = 0x1000; c < 0x10000; c += 0x1000) starts.push_back(c);
  for (uint32_t c : {0x10000U, 0x40000U, 0x80000U, 0xC0000U, 0x100000U}) starts.push_back(c);
  return starts;
}

Dfa property_names() {
  std::vector<std::string> all = {"Any", "ASCII", "Assigned"};
  const auto add = [&](std::string_view names, std::initializer_list<const char*> before) {
    while (!names.empty()) {
      const size_t end = std::min(names.find('|'), names.size());
      for (const char* prefix : before) {
        all.push_back(prefix + std::string(names.substr(0, end)));
      }
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  };
  for (const UnicodeSet& set : unicode_sets()) {
    if (set.kind == 'c') add(set.names, {"", "gc=", "General_Category="});
    if (set.kind == 'b') add(set.names, {""});
    if (set.kind == 's') add(set.names, {"sc=", "Script=", "scx=", "Script_Extensions="});
  }
  add("LC|Cased_Letter|C|Other|L|Letter|M|Mark|Combining_Mark|N|Number|P|Punctuation|punct|S|"
      "Symbol|Z|Separator",
      {"", "gc=", "General_Category="});
  return string_set(all);
}

// An automaton over characters under construction.
class Pieces {
 public:
  uint32_t state(bool final = false) {
    dfa_.states.push_back({{}, final});
    return static_cast<uint32_t>(dfa_.states.size() - 1);
  }
  void edge(uint32_t from, uint32_t low, uint32_t high, uint32_t to) {
    dfa_.states[from].edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), to});
  }
  void letters(uint32_t from, std::string_view all, uint32_t to) {
    for (const char c : all) {
      const auto byte = static_cast<uint8_t>(c);
      edge(from, byte, byte, to);
    }
  }
  void edges_as(uint32_t from, uint32_t other, std::string_view but = "") {
    for (const ByteEdge& one : dfa_.states[other].edges) {
      const bool left_out =
          one.low == one.high && but.find(static_cast<char>(one.low)) != std::string_view::npos;
      if (!left_out) dfa_.states[from].edges.push_back(one);
    }
  }

  // Ordinary characters; transitions on several ASCII characters begin at borders of
  // bucket_starts(). Characters in `but` are left out.
  void raw(uint32_t from, const CharacterEdges& edges, std::string_view but) {
    std::map<uint32_t, CharacterEdges> leads;  // of two bytes
    for (const CharacterEdge& range : edges) {
      for (uint32_t c = range.low; c <= std::min<uint32_t>(range.high, 0x7F); ++c) {
        if (but.find(static_cast<char>(c)) == std::string_view::npos)
          edge(from, c, c, range.target);
      }
      for (uint32_t lead = 0xC2; lead < 0xE0; ++lead) {
        const uint32_t begin = (lead & 0x1FU) << 6U;
        const uint32_t low = std::max(range.low, begin);
        const uint32_t high = std::min(range.high, begin + 63);
        if (low <= high) leads[lead].push_back({low - begin, high - begin, range.target});
      }
      for (uint32_t lead = 0xE0; lead < 0xF5; ++lead) {
        const bool three = lead < 0xF0;
        const uint32_t begin =
            three ? std::max((lead & 0xFU) << 12U, 0x800U) : std::max((lead & 7U) << 18U, 0x10000U);
        if (range.low > begin || range.high < begin) continue;
        const uint32_t next = state();
        edge(from, lead, lead, next);
        const uint32_t first = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        const uint32_t last = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        edge(next, first, last, tail(three ? 1 : 2, range.target));
      }
    }
    for (const auto& [lead, parts] : leads) {
      const uint32_t next = state();
      edge(from, lead, lead, next);
      for (const CharacterEdge& part : parts)
        edge(next, 0x80 + part.low, 0x80 + part.high, part.target);
    }
  }

  // That many hexadecimal digits of the numbers; transitions are sorted and disjoint.
  uint32_t hex(const CharacterEdges& edges, uint32_t count) {
    if (count == 0) return edges[0].target;
    const auto [place, added] = hex_.try_emplace({edges, count}, 0);
    if (!added) return place->second;
    const uint32_t made = place->second = state();
    const uint32_t size = uint32_t{1} << (4U * (count - 1));
    CharacterEdges below;
    for (uint32_t digit = 0; digit < 16; ++digit) {
      slice(edges, digit * size, digit * size + size - 1, &below);
      if (below.empty()) continue;
      const uint32_t next = hex(below, count - 1);
      if (digit < 10) {
        edge(made, '0' + digit, '0' + digit, next);
      } else {
        edge(made, 'A' + digit - 10, 'A' + digit - 10, next);
        edge(made, 'a' + digit - 10, 'a' + digit - 10, next);
      }
    }
    return made;
  }

  // The texts after a backslash. `sets`: target after an escape that denotes a set; `braces`:
  // target after \u{…}; kNoTarget: not allowed here. \0, \b and \- are not included.
  uint32_t escape(const CharacterEdges& edges, uint32_t sets, uint32_t braces) {
    const uint32_t made = state();
    const auto at = [&](uint32_t code) {
      const auto range = std::find_if(edges.begin(), edges.end(), [&](const CharacterEdge& one) {
        return one.low <= code && code <= one.high;
      });
      return range == edges.end() ? kNoTarget : range->target;
    };
    const auto stands_for = [&](char letter, uint32_t code) {
      if (at(code) != kNoTarget) letters(made, {&letter, 1}, at(code));
    };
    for (const char c : kSyntax) stands_for(c, static_cast<uint32_t>(c));
    for (const auto& [letter, code] :
         {std::pair('f', '\f'), std::pair('n', '\n'), std::pair('r', '\r'), std::pair('t', '\t'),
          std::pair('v', '\v')}) {
      stands_for(letter, static_cast<uint32_t>(code));
    }
    const uint32_t control = state();
    letters(made, "c", control);
    for (char c = 'A'; c <= 'Z'; ++c) {
      const uint32_t target = at(static_cast<uint32_t>(c) & 31U);
      if (target == kNoTarget) continue;
      letters(control, {&c, 1}, target);
      const char small = static_cast<char>(c | 0x20);
      letters(control, {&small, 1}, target);
    }
    CharacterEdges bytes;
    CharacterEdges units;
    for (const CharacterEdge& range : edges) {
      if (range.low < 0x100)
        bytes.push_back({range.low, std::min<uint32_t>(range.high, 0xFF), range.target});
      // No lone half of a surrogate pair.
      if (range.low < 0xD800) {
        units.push_back({range.low, std::min<uint32_t>(range.high, 0xD7FF), range.target});
      }
    }
    for (const CharacterEdge& range : edges) {
      if (range.high < 0x10000) continue;
      const uint32_t low = std::max<uint32_t>(range.low, 0x10000) - 0x10000;
      units.push_back(
          {0xD800 + (low >> 10U), 0xD800 + ((range.high - 0x10000) >> 10U), second(range.target)});
    }
    for (const CharacterEdge& range : edges) {
      const uint32_t low = std::max<uint32_t>(range.low, 0xE000);
      const uint32_t high = std::min<uint32_t>(range.high, 0xFFFF);
      if (low <= high) units.push_back({low, high, range.target});
    }
    if (!bytes.empty()) letters(made, "x", hex(bytes, 2));
    const uint32_t unit = state();
    letters(made, "u", unit);
    if (!units.empty()) edges_as(unit, hex(units, 4));
    if (braces != kNoTarget) letters(unit, "{", code_point(braces));
    if (sets != kNoTarget) {
      letters(made, "dDsSwW", sets);
      letters(made, "pP", property(sets));
    }
    return made;
  }

  Dfa finish() && {
    for (Dfa::State& state : dfa_.states) {
      std::sort(state.edges.begin(), state.edges.end(),
                [](const ByteEdge& a, const ByteEdge& b) { return a.low < b.low; });
    }
    return minimise(std::move(dfa_));
  }

 private:
  // `count` continuation bytes of a character.
  uint32_t tail(int count, uint32_t target) {
    if (count == 0) return target;
    const auto [place, added] = tails_.try_emplace({count, target}, 0);
    if (added) {
      place->second = state();
      edge(place->second, 0x80, 0xBF, tail(count - 1, target));
    }
    return place->second;
  }

  // The second half of a surrogate pair, including its backslash.
  uint32_t second(uint32_t target) {
    const auto [place, added] = seconds_.try_emplace(target, 0);
    if (added) {
      place->second = state();
      const uint32_t letter = state();
      letters(place->second, "\\", letter);
      letters(letter, "u", hex({{0xDC00, 0xDFFF, target}}, 4));
    }
    return place->second;
  }

  // After \u{: zeros, and then at most 10FFFF.
  uint32_t code_point(uint32_t target) {
    constexpr std::string_view kHex = "0123456789ABCDEFabcdef";
    uint32_t rest[5];  // by number of digits that may follow
    for (uint32_t more = 0; more < 5; ++more) {
      rest[more] = state();
      letters(rest[more], "}", target);
      if (more > 0) letters(rest[more], kHex, rest[more - 1]);
    }
    const uint32_t begin = state();
    const uint32_t zeros = state();
    const uint32_t one = state();
    letters(zeros, "}", target);
    letters(one, "}", target);
    for (const uint32_t at : {begin, zeros}) {
      letters(at, "0", zeros);
      letters(at, "1", one);
      letters(at, kHex.substr(2), rest[4]);
    }
    letters(one, "0", rest[4]);
    letters(one, kHex.substr(1), rest[3]);
    return begin;
  }

  // After \p.
  uint32_t property(uint32_t target) {
    const uint32_t made = state();
    const Dfa names = property_names();
    const auto first = static_cast<uint32_t>(dfa_.states.size());
    for (const Dfa::State& one : names.states) {
      const uint32_t at = state();
      for (const ByteEdge& range : one.edges) edge(at, range.low, range.high, first + range.target);
      if (one.final) letters(at, "}", target);
    }
    letters(made, "{", first);
    return made;
  }

  Dfa dfa_;
  std::map<std::pair<CharacterEdges, uint32_t>, uint32_t> hex_;
  std::map<std::pair<int, uint32_t>, uint32_t> tails_;
  std::map<uint32_t, uint32_t> seconds_;
};

constexpr std::string_view kDigits = "0123456789";

// A class after its [.
uint32_t char_class(Pieces& to, uint32_t end) {
  const std::vector<uint32_t> starts = bucket_starts();
  const auto last_of = [&](size_t i) {
    return i + 1 < starts.size() ? starts[i + 1] - 1 : kLastCharacter;
  };
  std::vector<uint32_t> behind;  // after a character of the bucket
  CharacterEdges all;
  for (size_t i = 0; i < starts.size(); ++i) {
    behind.push_back(to.state());
    all.push_back({starts[i], last_of(i), behind[i]});
  }
  const uint32_t behind_set = to.state();
  const uint32_t fresh = to.state();  // nothing before a hyphen can begin a range
  const auto in_class = [&](uint32_t escape, uint32_t control, uint32_t hyphen) {
    if (control != kNoTarget) to.letters(escape, "b", control);
    if (hyphen != kNoTarget) to.letters(escape, "-", hyphen);
    return escape;
  };
  to.letters(fresh, "]", end);
  to.raw(fresh, all, "\\]");
  const uint32_t escape =
      in_class(to.escape(all, behind_set, behind_set), behind['\b'], behind['-']);
  to.letters(fresh, "\\", escape);
  const uint32_t dash_behind_set = to.state();
  to.edges_as(behind_set, fresh, "-");
  to.letters(behind_set, "-", dash_behind_set);
  to.letters(dash_behind_set, "]", end);
  for (size_t i = 0; i < starts.size(); ++i) {
    const uint32_t dash = to.state();
    to.edges_as(behind[i], fresh, "-");
    to.letters(behind[i], "-", dash);
    to.letters(dash, "]", end);
    const size_t least = starts[i] < 0x80 ? i : i + 1;
    if (least == starts.size()) continue;
    const CharacterEdges above = {{starts[least], kLastCharacter, fresh}};
    to.raw(dash, above, "\\]");
    const auto if_above = [&](char c) {
      return static_cast<uint32_t>(c) >= starts[least] ? fresh : kNoTarget;
    };
    to.letters(dash, "\\",
               in_class(to.escape(above, kNoTarget, kNoTarget), if_above('\b'), if_above('-')));
  }
  const uint32_t behind_zero = to.state();
  to.edges_as(behind_zero, behind[0], kDigits);
  to.letters(escape, "0", behind_zero);
  const uint32_t begin = to.state();
  to.edges_as(begin, fresh, "^");
  to.letters(begin, "^", fresh);
  return begin;
}

}  // namespace

// Repeatable atoms, without groups, digits and \0.
Dfa pattern_atoms() {
  Pieces to;
  const uint32_t begin = to.state();
  const uint32_t end = to.state(true);
  const CharacterEdges all = {{0, kLastCharacter, end}};
  to.raw(begin, all, "^$\\.*+?()[]{}|0123456789");
  to.letters(begin, ".", end);
  to.letters(begin, "[", char_class(to, end));
  to.letters(begin, "\\", to.escape(all, end, end));
  return std::move(to).finish();
}

Dfa pattern_quantifiers() {
  constexpr uint32_t kSmall = 100;  // from here on numbers are only distinguished by their lengths
  constexpr size_t kLengths = 3;
  Pieces to;
  const uint32_t begin = to.state();
  const uint32_t end = to.state(true);
  const uint32_t lazy = to.state(true);
  to.letters(begin, "*+?", end);
  to.letters(end, "?", lazy);
  const auto digit = [&](uint32_t from, uint32_t value, uint32_t target) {
    to.edge(from, '0' + value, '0' + value, target);
  };
  const uint32_t enough = to.state();
  to.letters(enough, "}", end);
  to.letters(enough, kDigits, enough);
  std::vector<uint32_t> least;
  for (uint32_t n = 0; n < kSmall; ++n) {
    least.push_back(to.state());
    const uint32_t comma = to.state();
    to.letters(least[n], "}", end);
    to.letters(least[n], ",", comma);
    to.letters(comma, "}", end);
    // The second number so far is smaller.
    std::vector<uint32_t> less;
    for (uint32_t m = 0; m < n; ++m) less.push_back(to.state());
    for (uint32_t d = 0; d < 10; ++d) digit(comma, d, d < n ? less[d] : enough);
    for (uint32_t m = 0; m < n; ++m) {
      for (uint32_t d = 0; d < 10; ++d)
        digit(less[m], d, 10 * m + d < n ? less[10 * m + d] : enough);
    }
  }
  std::array<uint32_t, kLengths> large;
  const uint32_t larger = to.state();
  to.letters(larger, kDigits, larger);
  for (size_t i = kLengths; i-- > 0;) {
    large[i] = to.state();
    to.letters(large[i], kDigits, i + 1 < kLengths ? large[i + 1] : larger);
    uint32_t more = enough;
    for (size_t length = 0; length < 3 + i; ++length) {
      const uint32_t next = to.state();
      to.letters(next, kDigits, more);
      more = next;
    }
    const uint32_t comma = to.state();
    const uint32_t zeros = to.state();
    for (const uint32_t at : {comma, zeros}) {
      to.letters(at, "0", zeros);
      to.letters(at, kDigits.substr(1), more);
    }
    to.letters(large[i], "}", end);
    to.letters(large[i], ",", comma);
    to.letters(comma, "}", end);
  }
  const uint32_t comma = to.state();
  to.letters(larger, "}", end);
  to.letters(larger, ",", comma);
  to.letters(comma, "}", end);
  const uint32_t braces = to.state();
  to.letters(begin, "{", braces);
  for (uint32_t d = 0; d < 10; ++d) {
    digit(braces, d, least[d]);
    for (uint32_t n = 0; n < kSmall; ++n) {
      digit(least[n], d, 10 * n + d < kSmall ? least[10 * n + d] : large[0]);
    }
  }
  return std::move(to).finish();
}

// "(?<name>".
Dfa pattern_openings() {
  constexpr std::string_view kNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$";
  Pieces to;
  uint32_t at = to.state();
  for (const char* c : {"(", "?", "<"}) {
    const uint32_t next = to.state();
    to.letters(at, c, next);
    at = next;
  }
  const uint32_t name = to.state();
  to.letters(at, kNames, name);
  to.letters(name, kNames, name);
  to.letters(name, kDigits, name);
  to.letters(name, ">", to.state(true));
  return std::move(to).finish();
}

}  // namespace gen::grammar
