// SPDX-License-Identifier: Apache-2.0
// The plain texts of a clause (json_style.h), see clause_maker.h.
#include <algorithm>
#include <string>
#include <utility>

#include "grammar/expression/dfa_builder.h"
#include "grammar/json/plain_number.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/clause_maker.h"
#include "grammar/schema/format.h"
#include "grammar/schema/number_values.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

using TermKind = NumberTerm::Kind;

// Numbers of more digits are written with an exponent, as JavaScript does.
constexpr int64_t kMaxWritten = 21;
constexpr int64_t kMaxZeros = 6;         // after the point, before other digits
constexpr int64_t kMaxWholeDigits = 40;  // that a bound of whole numbers may require

// The shortest text of a value; `whole`: without an exponent.
std::string text_of(const Decimal& value, bool whole) {
  if (value.digits.empty()) return "0";
  std::string text = value.negative ? "-" : "";
  const auto size = static_cast<int64_t>(value.digits.size());
  const auto exponent = value.exponent;
  if (whole || (value.is_integer() && exponent <= kMaxWritten)) {
    return text + value.digits + std::string(static_cast<size_t>(exponent - size), '0');
  }
  if (exponent > 0 && exponent <= kMaxWritten) {
    const auto point = static_cast<size_t>(exponent);
    return text + value.digits.substr(0, point) + "." + value.digits.substr(point);
  }
  if (exponent <= 0 && -exponent < kMaxZeros) {
    return text + "0." + std::string(static_cast<size_t>(-exponent), '0') + value.digits;
  }
  text += value.digits[0];
  if (size > 1) text += "." + value.digits.substr(1);
  return text + "e" + std::to_string(exponent - 1);
}

bool is_whole(const NumberLiteral& one) {
  if (one.negated) return false;
  switch (one.term->kind) {
    case TermKind::kInteger:
    case TermKind::kPlain:
      return true;
    case TermKind::kMultiple:
      return one.term->scale <= 0;
    default:
      return false;
  }
}

// The number format that the bounds allow.
PlainNumbers shape_of(const std::vector<NumberLiteral>& terms) {
  PlainNumbers shape;
  shape.whole = std::any_of(terms.begin(), terms.end(), is_whole);
  uint32_t places = kUnbounded;
  for (const NumberLiteral& one : terms) {
    for (const Decimal& value : one.term->values) {
      const int64_t size = value.exponent + 1;  // a number beyond a bound may be longer
      if (shape.whole && size > PlainNumbers::kDigits && size <= kMaxWholeDigits) {
        shape.digits = std::max(shape.digits, static_cast<uint32_t>(size));
      }
      if (value.exponent > 99 || value.exponent < -99) shape.exponent_digits = 3;
    }
    if (one.term->kind == TermKind::kMultiple && !one.negated && one.term->scale > 0) {
      places = std::min(places, static_cast<uint32_t>(one.term->scale));
    }
  }
  if (places != kUnbounded) shape.places = places;
  return shape;
}

}  // namespace

ClauseMaker::SharedDfa ClauseMaker::plain_list_of(const Clause& clause) {
  if (options_.style.digits != 0) return nullptr;
  std::vector<NumberLiteral> terms = number_literals(clause);
  NumberTerm values;
  NumberTerm listed;
  const bool few = only_values(&terms, &values) ||
                   (list_multiples(&terms, &listed) && only_values(&terms, &values));
  const auto about_texts = [](const NumberLiteral& one) {
    return one.negated && one.term->kind == TermKind::kPlain;
  };
  if (!few || values.values.empty() || std::any_of(terms.begin(), terms.end(), about_texts)) {
    return nullptr;
  }
  std::vector<std::string> texts;
  for (const Decimal& value : values.values) texts.push_back(text_of(value, terms.size() > 1));
  SharedDfa& known = plain_lists_[texts];
  if (known == nullptr) known = std::make_shared<const Dfa>(string_set(texts));
  return known;
}

Result<ClauseMaker::SharedDfa> ClauseMaker::plain_numbers_of(const Clause& clause,
                                                             const SharedDfa& numbers) {
  if (numbers->empty()) return numbers;
  SharedDfa& known = styled_numbers_[numbers];
  if (known != nullptr) return known;
  const uint32_t max_digits = options_.style.digits;
  std::vector<NumberLiteral> terms = number_literals(clause);
  PlainNumbers shape = shape_of(terms);
  // Listed values have one text each.
  if (SharedDfa list = plain_list_of(clause)) return known = std::move(list);
  if (max_digits != 0) {
    const bool whole = shape.whole;
    shape = PlainNumbers::within(max_digits);
    shape.whole = whole;
    GEN_ASSIGN(Dfa made, combine(*numbers, plain_numbers(shape), Both::kAnd, options_.automata));
    return known = std::make_shared<const Dfa>(std::move(made));
  }
  // Remainders may be too many to be combined with digit counts. With distant bounds no text is
  // plain.
  PlainNumbers long_ones = PlainNumbers::within(kUnbounded);
  long_ones.exponent_digits = 3;
  long_ones.whole = shape.whole;
  for (const PlainNumbers& one : {shape, long_ones}) {
    auto made = combine(*numbers, plain_numbers(one), Both::kAnd, options_.automata);
    if (!made.ok() && made.status().code() != Code::kGrammar) return made.status();
    if (!made.ok()) continue;
    if (made->empty()) break;
    return known = std::make_shared<const Dfa>(std::move(*made));
  }
  return known = numbers;
}

Result<ClauseMaker::SharedDfa> ClauseMaker::plain_strings_of(const Clause& clause,
                                                             const SharedDfa& strings) {
  SharedDfa& known = styled_strings_[strings];
  if (known != nullptr) return known;
  SharedDfa made = strings;
  for (const Constraint& one : clause.constraints) {
    if (one.kind != Constraint::Kind::kDfa || one.negated) continue;
    const auto name = format_names_.find(one.dfa.get());
    if (name == format_names_.end()) continue;
    const auto [place, added] = plain_formats_.try_emplace(name->second);
    if (added) {
      std::string text;
      if (!plain_format_pattern(name->second, &text)) continue;
      Expressions expressions(options_.automata.building);
      GEN_ASSIGN(const ExprId parsed,
                 parse_regex(text, RegexMatch::kWhole, expressions, options_.automata));
      GEN_ASSIGN(Dfa dfa, build_dfa(expressions, parsed, options_.automata));
      place->second = std::make_shared<const Dfa>(std::move(dfa));
    }
    if (place->second == nullptr) continue;
    GEN_ASSIGN(Dfa both, combine(*made, *place->second, Both::kAnd, options_.automata));
    made = std::make_shared<const Dfa>(std::move(both));
  }
  return known = made->empty() ? strings : made;
}

}  // namespace gen::grammar
