// SPDX-License-Identifier: Apache-2.0
// See number_values.h.
#include "grammar/schema/number_values.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gen::grammar {
namespace {

using TermKind = NumberTerm::Kind;

bool is_multiple(const NumberTerm& term, const Decimal& value) {
  if (value.digits.empty()) return true;
  // The value is digits * 10^at in the unit of which it must be a multiple.
  const int64_t at = value.exponent - static_cast<int64_t>(value.digits.size()) + term.scale;
  if (at < 0) return false;  // its last digit is not 0
  uint64_t rest = 0;
  for (const char c : value.digits) {
    rest = (rest * 10 + static_cast<uint64_t>(c - '0')) % term.divisor;
  }
  for (int64_t i = 0; i < at && rest != 0; ++i) rest = rest * 10 % term.divisor;
  return rest == 0;
}

bool term_holds(const NumberTerm& term, const Decimal& value) {
  switch (term.kind) {
    case TermKind::kInteger:
    case TermKind::kPlain:
      return value.is_integer();
    case TermKind::kMultiple:
      return is_multiple(term, value);
    case TermKind::kOneOf:
      return std::binary_search(
          term.values.begin(), term.values.end(), value,
          [](const Decimal& a, const Decimal& b) { return a.key() < b.key(); });
    case TermKind::kBound:
      break;
  }
  const int order = compare(value, term.values[0]);
  switch (term.bound) {
    case Bound::kAtLeast:
      return order >= 0;
    case Bound::kAbove:
      return order > 0;
    case Bound::kAtMost:
      return order <= 0;
    case Bound::kBelow:
      return order < 0;
  }
  return false;
}

bool is_lower(const NumberLiteral& one) {
  return (one.term->bound == Bound::kAtLeast || one.term->bound == Bound::kAbove) != one.negated;
}

using Wide = __int128;
constexpr int64_t kMaxDigits = 36;  // of a Wide
constexpr Wide kMaxListed = 4096;

// Places after the point.
int64_t places_of(const Decimal& value) {
  return std::max<int64_t>(static_cast<int64_t>(value.digits.size()) - value.exponent, 0);
}

// In units of 10^-places, so that the value is whole. False if that is too long.
bool in_units(const Decimal& value, int64_t places, Wide* out) {
  if (value.exponent + places > kMaxDigits) return false;
  *out = 0;
  for (int64_t i = 0; i < value.exponent + places; ++i) {
    const auto at = static_cast<size_t>(i);
    *out = *out * 10 + (at < value.digits.size() ? value.digits[at] - '0' : 0);
  }
  if (value.negative) *out = -*out;
  return true;
}

Decimal from_units(Wide value, int64_t places) {
  Decimal made;
  made.negative = value < 0;
  if (value < 0) value = -value;
  for (; value > 0; value /= 10) made.digits.push_back(static_cast<char>('0' + value % 10));
  std::reverse(made.digits.begin(), made.digits.end());
  made.exponent = static_cast<int64_t>(made.digits.size()) - places;
  while (!made.digits.empty() && made.digits.back() == '0') made.digits.pop_back();
  return made.digits.empty() ? Decimal() : made;
}

}  // namespace

bool number_holds(const NumberLiteral& literal, const Decimal& value) {
  // Every value has a text that is not plain.
  if (literal.term->kind == TermKind::kPlain && literal.negated) return true;
  return term_holds(*literal.term, value) != literal.negated;
}

bool some_number_holds(std::span<const NumberLiteral> all) {
  const auto fits = [&](const Decimal& value) {
    return std::all_of(all.begin(), all.end(),
                       [&](const NumberLiteral& one) { return number_holds(one, value); });
  };
  if (fits(Decimal()) || fits({false, "1", 1})) return true;
  return std::any_of(all.begin(), all.end(), [&](const NumberLiteral& one) {
    return std::any_of(one.term->values.begin(), one.term->values.end(), fits);
  });
}

bool only_values(std::vector<NumberLiteral>* all, NumberTerm* values) {
  const auto list = std::find_if(all->begin(), all->end(), [](const NumberLiteral& one) {
    return !one.negated && one.term->kind == TermKind::kOneOf;
  });
  if (list == all->end()) return false;
  *values = *list->term;
  std::erase_if(values->values, [&](const Decimal& value) {
    return !std::all_of(all->begin(), all->end(),
                        [&](const NumberLiteral& one) { return number_holds(one, value); });
  });
  std::erase_if(*all, [](const NumberLiteral& one) { return one.term->kind != TermKind::kPlain; });
  all->push_back({values, false});
  return true;
}

bool list_multiples(std::vector<NumberLiteral>* all, NumberTerm* listed) {
  const NumberTerm* multiple = nullptr;
  const Decimal* least = nullptr;
  const Decimal* most = nullptr;
  for (const NumberLiteral& one : *all) {
    if (one.term->must_be_listed() && !one.negated) multiple = one.term;
    if (one.term->kind != TermKind::kBound) continue;
    const Decimal& value = one.term->values[0];
    const Decimal*& bound = is_lower(one) ? least : most;
    const bool tighter = bound == nullptr || compare(value, *bound) == (is_lower(one) ? 1 : -1);
    if (tighter) bound = &value;
  }
  if (multiple == nullptr || least == nullptr || most == nullptr) return false;
  const int64_t places =
      std::max({places_of(*least), places_of(*most), multiple->scale, int64_t{0}});
  Wide low = 0;
  Wide high = 0;
  Wide step = 0;
  const Decimal divisor = from_units(static_cast<Wide>(multiple->divisor), multiple->scale);
  if (!in_units(*least, places, &low) || !in_units(*most, places, &high) ||
      !in_units(divisor, places, &step)) {
    return false;
  }
  if (high / step - low / step > kMaxListed) return false;
  std::vector<Decimal> values;
  // One more at each end: the terms decide about each value.
  for (Wide k = low / step - 1; k <= high / step + 1; ++k) {
    values.push_back(from_units(k * step, places));
  }
  auto made = NumberTerm::one_of(std::move(values));
  if (!made.ok()) return false;
  *listed = std::move(*made);
  all->push_back({listed, false});
  return true;
}

bool common_multiple(const NumberTerm& a, const NumberTerm& b, NumberTerm* both) {
  constexpr uint64_t kLargest = 100'000'000'000'000'000U;
  NumberTerm made = a;
  uint64_t divisors[2] = {1, 1};
  int64_t scales[2] = {0, 0};
  const NumberTerm* const terms[2] = {&a, &b};
  for (size_t i = 0; i < 2; ++i) {
    if (terms[i]->kind != NumberTerm::Kind::kMultiple) continue;
    divisors[i] = terms[i]->divisor;
    scales[i] = terms[i]->scale;
  }
  made.scale = std::max(scales[0], scales[1]);
  for (size_t i = 0; i < 2; ++i) {
    for (int64_t scale = scales[i]; scale < made.scale; ++scale) {
      divisors[i] *= 10;
      if (divisors[i] > kLargest) return false;
    }
  }
  const uint64_t factor = divisors[0] / std::gcd(divisors[0], divisors[1]);
  if (factor > kLargest / divisors[1]) return false;
  uint64_t divisor = factor * divisors[1];
  for (; divisor % 10 == 0; divisor /= 10) --made.scale;
  if (divisor > NumberTerm::kMaxDivisor) return false;
  made.kind = NumberTerm::Kind::kMultiple;
  made.divisor = divisor;
  *both = std::move(made);
  return true;
}

void keep_tightest(std::vector<NumberLiteral>* all) {
  const auto is_bound = [](const NumberLiteral& one) { return one.term->kind == TermKind::kBound; };
  const auto is_strict = [](const NumberLiteral& one) {
    return (one.term->bound == Bound::kAbove || one.term->bound == Bound::kBelow) != one.negated;
  };
  const NumberLiteral* tightest[2] = {nullptr, nullptr};  // upper, lower
  for (const NumberLiteral& one : *all) {
    if (!is_bound(one)) continue;
    const NumberLiteral*& best = tightest[is_lower(one) ? 1 : 0];
    if (best == nullptr) {
      best = &one;
      continue;
    }
    const int order = compare(one.term->values[0], best->term->values[0]);
    const bool tighter = is_lower(one) ? order > 0 : order < 0;
    if (tighter || (order == 0 && is_strict(one))) best = &one;
  }
  std::vector<NumberLiteral> kept;
  for (const NumberLiteral& one : *all) {
    if (!is_bound(one) || &one == tightest[0] || &one == tightest[1]) kept.push_back(one);
  }
  *all = std::move(kept);
}

}  // namespace gen::grammar
