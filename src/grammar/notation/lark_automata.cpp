// SPDX-License-Identifier: Apache-2.0
// Automata of a Lark file, see lark_automata.h.
#include "grammar/notation/lark_automata.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "grammar/expression/characters.h"
#include "grammar/expression/dfa_builder.h"
#include "grammar/regex/unicode_sets.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNoLink = UINT32_MAX;
constexpr uint64_t kWorkPerAutomaton = 4096;  // minimum
constexpr uint64_t kWorkPerPair = 16;         // of edges, in visited nodes

// Removes all transitions from ends.
Dfa without_longer(Dfa dfa) {
  for (Dfa::State& state : dfa.states) {
    if (state.final) state.edges.shrink(0);
  }
  return minimise(dfa);
}

// By state of `a`: whether a text of `b` leads from it to an end.
std::vector<bool> before(const Dfa& a, const Dfa& b) {
  const size_t width = b.states.size();
  std::vector<std::vector<size_t>> into(a.states.size() * width);
  std::vector<bool> leads(into.size(), false);
  std::vector<size_t> open;
  for (size_t s = 0; s < a.states.size(); ++s) {
    for (size_t t = 0; t < width; ++t) {
      const size_t pair = s * width + t;
      if (a.states[s].final && b.states[t].final) {
        leads[pair] = true;
        open.push_back(pair);
      }
      for (const ByteEdge& x : a.states[s].edges) {
        for (const ByteEdge& y : b.states[t].edges) {
          if (x.low > y.high || y.low > x.high) continue;
          into[x.target * width + y.target].push_back(pair);
        }
      }
    }
  }
  while (!open.empty()) {
    const size_t pair = open.back();
    open.pop_back();
    for (const size_t from : into[pair]) {
      if (leads[from]) continue;
      leads[from] = true;
      open.push_back(from);
    }
  }
  std::vector<bool> made;
  for (size_t s = 0; s < a.states.size(); ++s) made.push_back(leads[s * width]);
  return made;
}

bool in(const CharSet& set, uint32_t c) {
  const auto& ranges = set.ranges();
  const auto behind = std::partition_point(ranges.begin(), ranges.end(),
                                           [&](const CharRange& r) { return r.low <= c; });
  return behind != ranges.begin() && (behind - 1)->high >= c;
}

}  // namespace

Result<Dfa> LarkAutomata::build(ExprId expr) {
  spent_ += kWorkPerAutomaton;
  return build_dfa(to_, expr, fuel_);
}

Result<ExprId> LarkAutomata::both(std::span<const ExprId> parts) {
  GEN_ASSIGN(Dfa made, build(parts[0]));
  for (const ExprId part : parts.subspan(1)) {
    GEN_ASSIGN(const Dfa other, build(part));
    GEN_ASSIGN(made, combine(made, other, Both::kAnd, fuel_));
  }
  return expression_of(to_, made);
}

Result<ExprId> LarkAutomata::negation(ExprId expr) {
  if (any_text_.empty()) {
    GEN_ASSIGN(any_text_, build(to_.repeat(characters(to_, CharSet().inverted()), 0, kUnbounded)));
  }
  GEN_ASSIGN(const Dfa some, build(expr));
  GEN_ASSIGN(const Dfa made, combine(any_text_, some, Both::kNot, fuel_));
  return expression_of(to_, made);
}

Result<ExprId> LarkAutomata::shortest(ExprId expr) {
  GEN_ASSIGN(Dfa made, build(expr));
  return expression_of(to_, without_longer(std::move(made)));
}

Result<ExprId> LarkAutomata::until(ExprId body, ExprId stop) {
  const ExprId parts[] = {body, stop};
  GEN_ASSIGN(Dfa whole, build(to_.sequence(parts)));
  whole = without_longer(std::move(whole));
  GEN_ASSIGN(const Dfa end, build(stop));
  if (whole.empty() || end.empty()) return Expressions::kNever;
  uint64_t work = 0;
  for (const Dfa::State& state : whole.states) work += 1 + state.edges.size();
  uint64_t each = 0;
  for (const Dfa::State& state : end.states) each += 1 + state.edges.size();
  work *= each * kWorkPerPair;
  spent_ += work;
  if (spent_ > fuel_.work) {
    return error(Code::kGrammar, "an automaton of more work than the limit of %llu",
                 static_cast<unsigned long long>(fuel_.work));
  }
  const std::vector<bool> ends = before(whole, end);
  for (size_t s = 0; s < ends.size(); ++s) whole.states[s].final = ends[s];
  GEN_ASSIGN(const Dfa only, build(body));
  GEN_ASSIGN(const Dfa made, combine(minimise(whole), only, Both::kAnd, fuel_));
  return expression_of(to_, made);
}

ExprId stretches(Expressions& to, std::span<const std::string> pieces) {
  struct SuffixState {
    std::map<uint32_t, uint32_t> next;
    uint32_t link = kNoLink;
    size_t length = 0;
  };
  std::unordered_map<std::string_view, uint32_t> numbers;
  std::vector<ExprId> written;
  std::vector<SuffixState> states(1);
  uint32_t last = 0;
  for (const std::string& piece : pieces) {
    if (piece.empty()) continue;
    const auto [known, added] = numbers.try_emplace(piece, static_cast<uint32_t>(written.size()));
    if (added) written.push_back(to.literal(piece));
    const uint32_t letter = known->second;
    const auto now = static_cast<uint32_t>(states.size());
    states.emplace_back();
    states[now].length = states[last].length + 1;
    uint32_t p = last;
    while (p != kNoLink && !states[p].next.contains(letter)) {
      states[p].next[letter] = now;
      p = states[p].link;
    }
    if (p == kNoLink) {
      states[now].link = 0;
    } else if (const uint32_t q = states[p].next[letter];
               states[q].length == states[p].length + 1) {
      states[now].link = q;
    } else {
      const auto copy = static_cast<uint32_t>(states.size());
      states.push_back(SuffixState(states[q]));
      states[copy].length = states[p].length + 1;
      for (; p != kNoLink; p = states[p].link) {
        const auto way = states[p].next.find(letter);
        if (way == states[p].next.end() || way->second != q) break;
        way->second = copy;
      }
      states[q].link = states[now].link = copy;
    }
    last = now;
  }
  Diagram diagram;
  diagram.final.assign(states.size(), true);
  for (uint32_t s = 0; s < states.size(); ++s) {
    for (const auto& [letter, target] : states[s].next) {
      diagram.transitions.push_back({s, target, written[letter]});
    }
  }
  return to.diagram(std::move(diagram));
}

std::vector<std::string> words_of(std::string_view text) {
  const CharSet space = unicode_set("White_Space").value_or(CharSet());
  CharSet word = unicode_set("Alphabetic").value_or(CharSet());
  word.add(unicode_set("N").value_or(CharSet()));
  word.add('_', '_');
  std::vector<std::string> made;
  int before = -1;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = utf8_next(text, &at);
    const int kind = in(space, c) ? 0 : in(word, c) ? 1 : 2;
    if (kind != before) made.emplace_back();
    before = kind;
    made.back() += text.substr(begin, at - begin);
  }
  return made;
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> made;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    static_cast<void>(utf8_next(text, &at));
    made.emplace_back(text.substr(begin, at - begin));
  }
  return made;
}

}  // namespace gen::grammar
