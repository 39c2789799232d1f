// SPDX-License-Identifier: Apache-2.0
// The numbers of clauses, see clause_maker.h: automata that are made once for equal constraints.
#include <algorithm>
#include <utility>

#include "grammar/schema/clause_maker.h"
#include "grammar/schema/number_dfa.h"
#include "grammar/schema/number_values.h"

namespace gen::grammar {

std::vector<NumberLiteral> ClauseMaker::number_literals(const Clause& clause) {
  std::vector<NumberLiteral> all;
  for (const Constraint& one : clause.constraints) {
    if (one.kind == Constraint::Kind::kNumber) all.push_back({one.number.get(), one.negated});
  }
  return all;
}

Result<ClauseMaker::SharedDfa> ClauseMaker::numbers_of(const Clause& clause) {
  using Asked = std::vector<std::pair<const NumberTerm*, bool>>;
  Asked all;
  std::vector<NumberLiteral> terms = number_literals(clause);
  for (const NumberLiteral& one : terms) {
    all.emplace_back(one.term, one.negated);
    met_before(one.term);
  }
  if (all.empty()) return SharedDfa();
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return std::pair(met_before(a.first), a.second) < std::pair(met_before(b.first), b.second);
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  SharedDfa& known = numbers_[all];
  if (known != nullptr) return known;
  NumberTerm values;
  NumberTerm listed;
  bool few = only_values(&terms, &values);
  const auto must_be_listed = [](const NumberLiteral& one) { return one.term->must_be_listed(); };
  if (!few && std::any_of(terms.begin(), terms.end(), must_be_listed)) {
    few = list_multiples(&terms, &listed) && only_values(&terms, &values);
    if (!few) {
      return error(Code::kGrammar,
                   "a divisor whose digits are above %llu, without bounds that leave "
                   "at most 4096 multiples",
                   static_cast<unsigned long long>(NumberTerm::kMaxDivisor));
    }
  }
  if (few) {
    Dfa made;
    if (!values.values.empty()) {
      GEN_ASSIGN(made, number_texts(terms, options_.automata));
    }
    return known = std::make_shared<const Dfa>(std::move(made));
  }
  join_multiples(&all);
  // Remainders multiply what others tell apart: they have an automaton of their own.
  const auto is_multiple = [](const auto& one) {
    return one.first->kind == NumberTerm::Kind::kMultiple;
  };
  const auto multiples = std::stable_partition(all.begin(), all.end(), is_multiple);
  const Asked apart(all.begin(), multiples);
  std::vector<NumberLiteral> literals;
  for (auto one = multiples; one != all.end(); ++one) literals.push_back({one->first, one->second});
  keep_tightest(&literals);
  const auto texts_of = [&](const std::vector<NumberLiteral>& some) -> Result<SharedDfa> {
    Asked key;
    for (const NumberLiteral& one : some) key.emplace_back(one.term, one.negated);
    SharedDfa& made = numbers_[key];
    if (made == nullptr) {
      GEN_ASSIGN(Dfa texts, number_texts(some, options_.automata));
      made = std::make_shared<const Dfa>(std::move(texts));
    }
    return made;
  };
  SharedDfa met;
  if (apart.empty() || !literals.empty()) {
    GEN_ASSIGN(met, texts_of(literals));
  }
  for (const auto& [term, negated] : apart) {
    GEN_ASSIGN(const SharedDfa one, texts_of({{term, negated}}));
    if (met == nullptr) {
      met = one;
      continue;
    }
    SharedDfa& both = products_[{met, one}];
    if (both == nullptr) {
      GEN_ASSIGN(Dfa made, combine(*met, *one, Both::kAnd, options_.automata));
      both = std::make_shared<const Dfa>(std::move(made));
    }
    met = both;
  }
  return known = met;
}

// Multiples of several numbers are those of one, whose automaton is no product.
void ClauseMaker::join_multiples(std::vector<std::pair<const NumberTerm*, bool>>* all) {
  const auto is_multiple = [](const auto& one) {
    return !one.second && one.first->kind == NumberTerm::Kind::kMultiple;
  };
  const auto first = std::find_if(all->begin(), all->end(), is_multiple);
  if (first == all->end()) return;
  NumberTerm joined = *first->first;
  bool grown = false;
  std::vector<std::pair<const NumberTerm*, bool>> kept;
  for (auto one = all->begin(); one != all->end(); ++one) {
    const bool integer = !one->second && one->first->kind == NumberTerm::Kind::kInteger;
    const bool joins = integer || is_multiple(*one);
    if (one == first || (joins && common_multiple(joined, *one->first, &joined))) {
      grown |= one != first;
    } else {
      kept.push_back(*one);
    }
  }
  if (!grown) return;
  SharedTerm& term = multiples_[{joined.divisor, joined.scale}];
  if (term == nullptr) term = std::make_shared<const NumberTerm>(std::move(joined));
  kept.emplace_back(term.get(), false);
  *all = std::move(kept);
}

Result<std::vector<Clause>> ClauseMaker::join_lists(std::vector<Clause> clauses) {
  std::vector<Clause> kept;
  std::vector<Decimal> listed;
  Clause list;
  for (Clause& clause : clauses) {
    std::vector<NumberLiteral> terms = number_literals(clause);
    NumberTerm values;
    if (!only_values(&terms, &values) || terms.size() > 1) {
      kept.push_back(std::move(clause));
      continue;
    }
    listed.insert(listed.end(), values.values.begin(), values.values.end());
    list.done = std::move(clause.done);
  }
  if (!list.done.empty()) {
    GEN_ASSIGN(NumberTerm all, NumberTerm::one_of(std::move(listed)));
    Constraint one;
    one.kind = Constraint::Kind::kNumber;
    one.number = joined_.emplace_back(std::make_shared<const NumberTerm>(std::move(all)));
    list.constraints.push_back(std::move(one));
    kept.push_back(std::move(list));
  }
  return kept;
}

}  // namespace gen::grammar
