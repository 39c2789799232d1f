// SPDX-License-Identifier: Apache-2.0
// Strings and names that satisfy a clause, see clause_maker.h.
#include <algorithm>
#include <utility>

#include "grammar/expression/dfa_builder.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/clause_maker.h"
#include "grammar/schema/pattern_check.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

using What = Constraint::Kind;

constexpr size_t kFewStrings = 4096;

}  // namespace

const ClauseMaker::SharedDfa& ClauseMaker::any_string() {
  if (any_string_ == nullptr) {
    any_string_ = std::make_shared<const Dfa>(gen::grammar::any_string());
  }
  return any_string_;
}

// The intersection of the constraints with automata; null if there are none.
Result<ClauseMaker::SharedDfa> ClauseMaker::strings_of(const Clause& clause) {
  std::vector<std::pair<const Dfa*, bool>> all;
  for (const Constraint& one : clause.constraints) {
    if (one.kind != Constraint::Kind::kDfa) continue;
    all.emplace_back(one.dfa.get(), one.negated);
    met_before(one.dfa.get());
  }
  if (all.empty()) return SharedDfa();
  GEN_ASSIGN(SharedDfa made, meet(std::move(all)));
  bool negated = false;
  bool asked = false;
  for (const Constraint& one : clause.constraints) {
    if (one.kind != What::kPattern) continue;
    asked = true;
    negated |= one.negated;
  }
  if (!asked) return made;
  std::vector<std::string> few;
  if (finite_strings(*made, kFewStrings, &few)) {
    std::erase_if(few, [&](const std::string& text) {
      return std::any_of(clause.constraints.begin(), clause.constraints.end(),
                         [&](const Constraint& one) {
                           return one.kind == What::kPattern && is_pattern(text) == one.negated;
                         });
    });
    if (few.empty()) return SharedDfa(std::make_shared<const Dfa>());
    return SharedDfa(std::make_shared<const Dfa>(string_set(few)));
  }
  GEN_ASSIGN(const bool all_are, are_patterns(*made));
  if (all_are && negated) return SharedDfa(std::make_shared<const Dfa>());
  return made;
}

// Whether all of them are trivially patterns: no character in them needs a counterpart.
Result<bool> ClauseMaker::are_patterns(const Dfa& strings) {
  std::vector<std::string> few;
  if (finite_strings(strings, kFewStrings, &few)) {
    return std::all_of(few.begin(), few.end(), is_pattern);
  }
  if (plain_patterns_ == nullptr) {
    Expressions expressions(options_.automata.building);
    GEN_ASSIGN(const ExprId parsed, parse_regex("[^\\\\*+?()\\[\\]{}]*", RegexMatch::kWhole,
                                                expressions, options_.automata));
    GEN_ASSIGN(Dfa plain, build_dfa(expressions, parsed, options_.automata));
    plain_patterns_ = std::make_shared<const Dfa>(std::move(plain));
  }
  GEN_ASSIGN(const Dfa others, combine(strings, *plain_patterns_, Both::kNot, options_.automata));
  return others.empty();
}

Result<bool> ClauseMaker::must_be_patterns(const Clause& clause, const SharedDfa& strings) {
  for (const Constraint& one : clause.constraints) {
    if (one.kind != What::kPattern) continue;
    std::vector<std::string> few;
    if (strings != nullptr && finite_strings(*strings, kFewStrings, &few)) return false;
    if (strings != nullptr) {
      GEN_ASSIGN(const bool are, are_patterns(*strings));
      if (are) return false;
    }
    if (one.negated) return refuse(one.schema, "format", "the negation of the format regex");
    const Lengths size = size_of(clause);
    if (strings == nullptr && size.min <= 1 && size.max == kUnbounded) return true;
    return refuse(one.schema, "format", "the format regex together with other limits of strings");
  }
  return false;
}

Result<ClauseMaker::SharedDfa> ClauseMaker::meet(std::vector<std::pair<const Dfa*, bool>> all) {
  // Non-negated ones first.
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.second, met_before(a.first)) < std::pair(b.second, met_before(b.first));
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  SharedDfa& known = met_[all];
  if (known != nullptr) return known;
  const DfaFuel& fuel = options_.automata;
  Dfa made = all[0].second ? *any_string() : *all[0].first;
  for (size_t i = all[0].second ? 0 : 1; i < all.size(); ++i) {
    GEN_ASSIGN(made, combine(made, *all[i].first, all[i].second ? Both::kNot : Both::kAnd, fuel));
  }
  known = std::make_shared<const Dfa>(std::move(made));
  return known;
}

Result<bool> ClauseMaker::fits_name(const Literals& literals, const std::string& name) {
  GEN_ASSIGN(const std::vector<Clause> all, clauses(JsonType::kString, literals));
  const auto length = static_cast<uint32_t>(
      std::count_if(name.begin(), name.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  for (const Clause& clause : all) {
    const Lengths size = size_of(clause);
    const bool fits = std::all_of(
        clause.constraints.begin(), clause.constraints.end(), [&](const Constraint& one) {
          if (one.kind == What::kDfa) return accepts(*one.dfa, name) != one.negated;
          return one.kind != What::kPattern || is_pattern(name) != one.negated;
        });
    if (fits && size.min <= length && length <= size.max) return true;
  }
  return false;
}

Result<ClauseMaker::SharedDfa> ClauseMaker::names_of(const Literals& literals, bool* patterns) {
  GEN_ASSIGN(const std::vector<Clause> all, clauses(JsonType::kString, literals));
  std::vector<Dfa> parts;
  for (const Clause& clause : all) {
    GEN_ASSIGN(SharedDfa some, strings_of(clause));
    GEN_ASSIGN(const bool must_be, must_be_patterns(clause, some));
    if (must_be && patterns != nullptr && all.size() == 1) *patterns = true;
    if (must_be && (patterns == nullptr || !*patterns)) {
      return refuse(clause.done[0].schema, "format",
                    "the format regex of names together with other limits");
    }
    if (some == nullptr) some = any_string();
    const Lengths size = size_of(clause);
    if (size.min > 0 || size.max != kUnbounded) {
      const uint32_t most = size.max != kUnbounded ? size.max : size.min;
      if (most > 4096) return refuse(literals[0].schema, "", "lengths of names above 4096");
      GEN_ASSIGN(Dfa both, with_length(*some, size, options_.automata));
      some = std::make_shared<const Dfa>(std::move(both));
    }
    parts.push_back(*some);
  }
  GEN_ASSIGN(Dfa names, unite(std::move(parts), options_.automata));
  return SharedDfa(std::make_shared<const Dfa>(std::move(names)));
}

Result<ClauseMaker::SharedDfa> ClauseMaker::pattern(const JsonValue* schema, const char* keyword,
                                                    const std::string& text) {
  SharedDfa& known = patterns_[text];
  if (known != nullptr) return known;
  Expressions expressions(options_.automata.building);
  auto parsed = parse_regex(text, RegexMatch::kSearch, expressions, options_.automata);
  if (!parsed.ok()) return refuse(schema, keyword, parsed.status().message());
  auto dfa = build_dfa(expressions, *parsed, options_.automata);
  if (!dfa.ok()) return refuse(schema, keyword, dfa.status().message());
  // A pattern may match bytes that are not characters; strings contain none.
  GEN_ASSIGN(Dfa strings, combine(*dfa, *any_string(), Both::kAnd, options_.automata));
  known = std::make_shared<const Dfa>(std::move(strings));
  return known;
}

}  // namespace gen::grammar
