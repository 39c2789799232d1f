// SPDX-License-Identifier: Apache-2.0
// See free_text.h.
#include "calls/syntax/free_text.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "grammar/base/word_search.h"
#include "grammar/expression/dfa_builder.h"
#include "grammar/json/json_text.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/string_dfa.h"

namespace gen::calls {

using grammar::ByteSet;
using grammar::Dfa;
using grammar::DfaFuel;
using grammar::Diagram;
using grammar::Expressions;
using grammar::ExprId;
using grammar::WordSearch;

ExprId free_text(const MarkWriter& marks, std::span<const Way> ways, bool may_end) {
  Expressions& to = marks.expressions();
  std::vector<std::string> words;
  std::vector<std::vector<ExprId>> behind;  // by word, and whether the text ends there
  std::vector<std::vector<ExprId>> last;
  std::vector<ExprId> by_token;  // ways that begin with a control token
  std::vector<ExprId> last_by_token;
  for (const Way& way : ways) {
    const size_t token = marks.first_token(way.mark);
    const bool never = way.behind == Expressions::kNever;
    std::string word = token == 0 || never ? way.mark : way.mark.substr(0, token);
    // A mark that is forbidden, but begins this one, leads to it.
    for (const Way& other : ways) {
      const bool begins = other.behind == Expressions::kNever && word.starts_with(other.mark);
      if (begins && token != 0) word = other.mark;
    }
    const auto at =
        static_cast<size_t>(std::find(words.begin(), words.end(), word) - words.begin());
    if (at == words.size()) {
      words.push_back(word);
      behind.emplace_back();
      last.emplace_back();
    }
    if (never) continue;
    const std::string_view rest = std::string_view(way.mark).substr(token == 0 ? 0 : word.size());
    const ExprId parts[] = {marks.text(rest), way.behind};
    const ExprId whole = to.sequence(parts);
    if (token == 0) {
      (way.ends ? last_by_token : by_token).push_back(whole);
    } else {
      (way.ends ? last : behind)[at].push_back(whole);
    }
  }
  const WordSearch search(words);
  const auto end = static_cast<uint32_t>(search.nodes().size());
  Diagram diagram;
  const auto lead = [&](uint32_t from, uint32_t target, const std::vector<ExprId>& all) {
    const ExprId one = to.choice(all);
    if (one == Expressions::kNever || one == Expressions::kEmpty) return;
    diagram.transitions.push_back({from, target, one});
  };
  for (uint32_t n = 0; n < end; ++n) {
    const WordSearch::Node& node = search.nodes()[n];
    const bool word = node.word != WordSearch::kNone;
    diagram.final.push_back(may_end && !word);
    if (word) {
      lead(n, 0, behind[node.word]);
      lead(n, end, last[node.word]);
      continue;
    }
    std::map<uint32_t, ByteSet> sets;
    for (uint32_t byte = 0; byte < grammar::kFirstSignal; ++byte) {
      sets[node.to[byte]].add(static_cast<uint8_t>(byte));
    }
    for (const auto& [target, set] : sets) {
      const uint32_t there = search.nodes()[target].word;
      const ExprId read = to.bytes(set);
      if (there == WordSearch::kNone) {
        diagram.transitions.push_back({n, target, read});
        continue;
      }
      // No transition reads nothing: behind such a mark the text is where it leads to at once.
      const ExprId on = to.choice(behind[there]);
      const ExprId off = to.choice(last[there]);
      if (on == Expressions::kEmpty) diagram.transitions.push_back({n, 0, read});
      if (off == Expressions::kEmpty) diagram.transitions.push_back({n, end, read});
      const auto leads = [](ExprId id) {
        return id != Expressions::kEmpty && id != Expressions::kNever;
      };
      if (leads(on) || leads(off)) diagram.transitions.push_back({n, target, read});
    }
    lead(n, 0, by_token);
    lead(n, end, last_by_token);
  }
  diagram.final.push_back(true);
  return to.diagram(std::move(diagram));
}

Result<Dfa> strings_without(std::span<const std::string> marks, const DfaFuel& fuel) {
  const WordSearch search(marks);
  // From here on a mark that follows would end too early.
  std::vector<bool> bad(search.nodes().size(), false);
  for (const std::string& mark : marks) {
    for (size_t period = 1; period < mark.size(); ++period) {
      if (!mark.starts_with(std::string_view(mark).substr(period))) continue;
      uint32_t node = 0;
      for (size_t i = 0; i < period; ++i)
        node = search.nodes()[node].to[static_cast<uint8_t>(mark[i])];
      bad[node] = true;
    }
  }
  // Where a mark ends nothing follows and no text ends, so combine() removes it.
  Dfa made;
  for (uint32_t n = 0; n < search.nodes().size(); ++n) {
    grammar::Dfa::State state;
    const WordSearch::Node& node = search.nodes()[n];
    state.final = node.word == WordSearch::kNone;
    for (uint32_t at = n; at != 0; at = search.nodes()[at].back) state.final &= !bad[at];
    for (uint32_t byte = 0; byte < 256 && node.word == WordSearch::kNone; ++byte) {
      const uint32_t target = node.to[byte];
      const auto value = static_cast<uint8_t>(byte);
      auto& edges = state.edges;
      if (!edges.empty() && edges.back().target == target && edges.back().high + 1 == value) {
        edges.back().high = value;
      } else {
        edges.push_back({value, value, target});
      }
    }
    made.states.push_back(std::move(state));
  }
  return grammar::combine(grammar::any_string(), made, grammar::Both::kAnd, fuel);
}

Result<Dfa> strings_like(std::string_view pattern, const DfaFuel& fuel) {
  Expressions expressions(fuel.building);
  GEN_ASSIGN(const ExprId parsed,
             grammar::parse_regex(pattern, grammar::RegexMatch::kWhole, expressions, fuel));
  return grammar::build_dfa(expressions, parsed, fuel);
}

ExprId raw_text(Expressions& to, const Dfa& strings, uint32_t most) {
  if (strings.empty()) return Expressions::kNever;
  if (most == grammar::kUnbounded) return grammar::expression_of(to, strings);
  // The start of its own is behind no character, so it does not count.
  Diagram diagram;
  const auto add = [&](const Dfa::State& state, bool counted) {
    const auto from = static_cast<uint32_t>(diagram.final.size());
    diagram.final.push_back(state.final);
    diagram.counted.push_back(counted);
    std::map<uint32_t, ByteSet> sets;
    for (const grammar::ByteEdge& edge : state.edges) {
      sets[edge.target].add(ByteSet::range(edge.low, edge.high));
    }
    for (const auto& [target, set] : sets) {
      diagram.transitions.push_back({from, target + 1, to.bytes(set)});
    }
  };
  add(strings.states[0], false);
  for (const Dfa::State& state : strings.states) {
    const bool inside = !state.final && !state.edges.empty() && state.edges[0].low >= 0x80 &&
                        state.edges[0].low < 0xC0;
    add(state, !inside);
  }
  return to.limited(to.diagram(std::move(diagram)), most);
}

}  // namespace gen::calls
