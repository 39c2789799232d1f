// SPDX-License-Identifier: Apache-2.0
// Number constraints evaluated digit by digit, see number_digits.h.
#include "grammar/schema/number_digits.h"

#include <algorithm>
#include <cstdlib>

namespace gen::grammar {
namespace {

using TermKind = NumberTerm::Kind;

constexpr int32_t kMaxLeadingZeros = kMaxWhole;
constexpr uint32_t kAnyDigit = 0x3FF;

ExponentSet all_or_none(bool all) { return {all, {}}; }
ExponentSet from(int64_t first) { return {false, {first}}; }

// Whole numbers. Words: trailing zeros of the digits before the point; the last non-zero place
// after it.
void add_integer(int digit, bool fraction, const DigitCount& before, const DigitCount& now,
                 DigitWords* words) {
  auto& [zeros, last, unused] = *words;
  if (digit != 0) {
    zeros = 0;
    if (fraction) last = now.many ? 1 : static_cast<int32_t>(now.places);
  } else if (before.nonzero && !fraction) {
    zeros = std::min(zeros + 1, kMaxLeadingZeros);
  }
  if (last != 0 || now.many) zeros = 0;
  if (now.many) last = std::min(last, 1);
}

// Comparison with 0.d1d2... * 10^exponent. Words: the number is 0.xyz * 10^size; the result so far,
// or kSmaller or kLarger once no digit can change it; the next digit to compare.
constexpr int32_t kSmaller = 2;
constexpr int32_t kLarger = 3;

void add_bound(const Decimal& limit, int digit, bool fraction, const DigitCount& now,
               DigitWords* words) {
  auto& [size, order, place] = *words;
  if (limit.digits.empty() || order >= kSmaller) return;
  const auto exponent = static_cast<int32_t>(limit.exponent);
  if (!now.nonzero) {
    if (fraction) --size;
    if (now.many && size < exponent) size = exponent - 1;
    return;
  }
  if (!fraction) ++size;
  if (order == 0) {
    const auto count = static_cast<int32_t>(limit.digits.size());
    const int other = place < count ? limit.digits[static_cast<size_t>(place)] - '0' : 0;
    order = digit < other ? -1 : digit > other ? 1 : 0;
    place = order != 0 ? 0 : std::min(place + 1, count);
  }
  if (!now.many) return;
  // No exponent can follow, so the size alone may decide.
  if (size > exponent) {
    *words = {0, kLarger, 0};
  } else if (size < exponent && fraction) {
    *words = {0, kSmaller, 0};
  }
}

bool fits(Bound bound, int to_limit) {
  switch (bound) {
    case Bound::kAtLeast:
      return to_limit >= 0;
    case Bound::kAbove:
      return to_limit > 0;
    case Bound::kAtMost:
      return to_limit <= 0;
    default:
      return to_limit < 0;
  }
}

ExponentSet bound_exponents(const NumberTerm& term, bool minus, const DigitCount& count,
                            const DigitWords& words) {
  const auto [size, order, place] = words;
  const Decimal& limit = term.values[0];
  const int sign = limit.digits.empty() ? 0 : limit.negative ? -1 : 1;
  if (!count.nonzero) return all_or_none(fits(term.bound, -sign));
  const int own = minus ? -1 : 1;
  if (own != sign) return all_or_none(fits(term.bound, own));
  if (order >= kSmaller) return all_or_none(fits(term.bound, order == kLarger ? own : -own));
  const bool shorter = order == 0 && place < static_cast<int32_t>(limit.digits.size());
  ExponentSet made;
  made.below = fits(term.bound, -own);
  bool last = made.below;
  const int64_t equal = limit.exponent - size;
  const auto put = [&](int64_t at, bool has) {
    if (has != last) made.flips.push_back(at);
    last = has;
  };
  put(equal, fits(term.bound, (shorter ? -1 : order) * own));
  put(equal + 1, fits(term.bound, own));
  return made;
}

uint32_t times_ten(uint32_t value, int64_t times, uint64_t divisor) {
  uint64_t made = value;
  uint64_t power = 10;  // to 1, 2, 4, 8, ...
  for (; times > 0; times /= 2) {
    if (times % 2 == 1) made = made * power % divisor;
    power = power * power % divisor;
  }
  return static_cast<uint32_t>(made);
}

// Multiples. The number is rest * 10^(zeros - places), where `rest` has no trailing zeros and is
// known modulo the divisor. Once no exponent can follow, only as many zeros and places are
// distinguished as the scale needs. Words: rest; zeros; places, -1 for a number that cannot be a
// multiple.
void add_multiple(const NumberTerm& term, int digit, bool fraction, const DigitCount& before,
                  const DigitCount& now, DigitWords* words) {
  int32_t& rest = (*words)[0];  // no structured binding: clang 14 cannot capture one
  int32_t& zeros = (*words)[1];
  int32_t& places = (*words)[2];
  if (places < 0) return;
  const auto max_places = static_cast<int32_t>(std::max<int64_t>(term.scale, 0));
  const auto max_zeros = static_cast<int32_t>(std::max<int64_t>(-term.scale, 0));
  const auto shift = [&](int64_t by, int plus) {
    const uint32_t moved = times_ten(static_cast<uint32_t>(rest), by, term.divisor);
    rest = static_cast<int32_t>((moved + static_cast<uint32_t>(plus)) % term.divisor);
  };
  if (before.many && fraction) {
    if (places < max_places) {
      shift(1, digit);
      ++places;
    } else if (digit != 0) {
      *words = {0, 0, -1};
    }
    return;
  }
  if (digit != 0) {
    shift(int64_t{zeros} + 1, digit);
    zeros = 0;
  } else if (before.many && zeros == max_zeros) {
    shift(1, 0);
  } else if (before.nonzero) {
    ++zeros;
  }
  if (fraction) ++places;
  if (!now.many || before.many) return;
  if (now.nonzero && places - zeros > max_places) {
    *words = {0, 0, -1};
    return;
  }
  const int32_t kept = std::min(places, max_places);
  zeros = now.nonzero ? zeros - places + kept : 0;
  places = kept;
  if (zeros > max_zeros) {
    shift(zeros - max_zeros, 0);
    zeros = max_zeros;
  }
}

ExponentSet multiple_exponents(const NumberTerm& term, const DigitCount& count,
                               const DigitWords& words) {
  const auto [rest, zeros, places] = words;
  if (!count.nonzero) return all_or_none(true);
  if (places < 0) return all_or_none(false);
  if (count.many) {
    const int64_t by = term.scale - places + zeros;
    const bool whole = by >= 0;
    return all_or_none(whole && times_ten(static_cast<uint32_t>(rest), by, term.divisor) == 0);
  }
  // The number divided by 10^-scale is rest * 10^(e + shift); it is whole from 0 on.
  const int64_t shift = term.scale - places + zeros;
  ExponentSet made;
  bool last = false;
  uint64_t value = static_cast<uint32_t>(rest);
  for (int i = 0; i < 20; ++i) {
    const bool has = value % term.divisor == 0;
    if (has != last) made.flips.push_back(i - shift);
    last = has;
    value = value * 10 % term.divisor;
  }
  return made;
}

// One of several values with sorted digits. Words: the range of values that begin with the digits
// so far, first and past the last; the next digit. The size, as for bounds, is in the upper half.
struct OneOf {
  int32_t first;
  int32_t last;
  int32_t place;
  int32_t size;
};

OneOf unpack(const DigitWords& words) {
  return {words[0], words[1], words[2] & 0xFFFF, words[2] >> 16};
}
DigitWords pack(const OneOf& one) { return {one.first, one.last, one.size * 65536 + one.place}; }

int digit_at(const Decimal& value, int32_t place) {
  const auto at = static_cast<size_t>(place);
  return at < value.digits.size() ? value.digits[at] - '0' : 0;
}

void add_one_of(const NumberTerm& term, int digit, bool fraction, const DigitCount& now,
                DigitWords* words) {
  OneOf one = unpack(*words);
  const auto& values = term.values;
  const auto exponents = [&] {
    int64_t least = INT32_MAX;
    int64_t most = INT32_MIN;
    for (int32_t i = one.first; i < one.last; ++i) {
      least = std::min(least, values[static_cast<size_t>(i)].exponent);
      most = std::max(most, values[static_cast<size_t>(i)].exponent);
    }
    return std::pair(least, most);
  };
  if (!now.nonzero) {
    if (fraction) --one.size;
    if (now.many) one.size = std::max(one.size, static_cast<int32_t>(exponents().first) - 1);
    *words = pack(one);
    return;
  }
  if (one.first == one.last) return;
  if (!fraction) ++one.size;
  while (one.first < one.last &&
         digit_at(values[static_cast<size_t>(one.first)], one.place) != digit) {
    ++one.first;
  }
  while (one.first < one.last &&
         digit_at(values[static_cast<size_t>(one.last) - 1], one.place) != digit) {
    --one.last;
  }
  int32_t longest = 0;
  for (int32_t i = one.first; i < one.last; ++i) {
    longest = std::max(longest, static_cast<int32_t>(values[static_cast<size_t>(i)].digits.size()));
  }
  one.place = std::min(one.place + 1, longest);
  if (now.many) {
    const auto [least, most] = exponents();
    if (one.size > most || (fraction && one.size < least)) one.last = one.first;
  }
  if (one.first == one.last) one = {0, 0, 0, 0};
  *words = pack(one);
}

ExponentSet one_of_exponents(const NumberTerm& term, bool minus, const DigitCount& count,
                             const DigitWords& words) {
  const OneOf one = unpack(words);
  std::vector<int64_t> found;
  for (int32_t i = one.first; i < one.last; ++i) {
    const Decimal& value = term.values[static_cast<size_t>(i)];
    if (value.digits.empty()) {
      if (!count.nonzero) return all_or_none(true);
      continue;
    }
    if (!count.nonzero || value.negative != minus) continue;
    if (static_cast<int32_t>(value.digits.size()) > one.place) continue;
    found.push_back(value.exponent - one.size);
  }
  std::sort(found.begin(), found.end());
  ExponentSet made;
  for (const int64_t exponent : found) {
    if (!made.flips.empty() && made.flips.back() == exponent) {
      made.flips.back() = exponent + 1;
    } else if (made.flips.empty() || made.flips.back() < exponent) {
      made.flips.insert(made.flips.end(), {exponent, exponent + 1});
    }
  }
  return made;
}

}  // namespace

bool ExponentSet::has(int64_t exponent) const {
  const auto behind = std::upper_bound(flips.begin(), flips.end(), exponent) - flips.begin();
  return below != (behind % 2 == 1);
}

int64_t ExponentSet::reach() const {
  if (flips.empty()) return 0;
  return std::max(std::abs(flips.front()), std::abs(flips.back())) + 1;
}

ExponentSet operator~(ExponentSet set) {
  set.below = !set.below;
  return set;
}

ExponentSet operator&(const ExponentSet& a, const ExponentSet& b) {
  ExponentSet made;
  made.below = a.below && b.below;
  bool last = made.below;
  bool in_a = a.below;
  bool in_b = b.below;
  for (size_t i = 0, k = 0; i < a.flips.size() || k < b.flips.size();) {
    const int64_t at = i == a.flips.size()   ? b.flips[k]
                       : k == b.flips.size() ? a.flips[i]
                                             : std::min(a.flips[i], b.flips[k]);
    if (i < a.flips.size() && a.flips[i] == at) {
      in_a = !in_a;
      ++i;
    }
    if (k < b.flips.size() && b.flips[k] == at) {
      in_b = !in_b;
      ++k;
    }
    if ((in_a && in_b) != last) made.flips.push_back(at);
    last = in_a && in_b;
  }
  return made;
}

void DigitCount::add(bool fraction, int digit, bool scientific) {
  const bool small = digit != 0 && !nonzero && fraction;  // 0.01
  nonzero |= digit != 0;
  if (many) return;
  // After the point, the digits before it no longer matter.
  if (fraction) whole = 0;
  ++(fraction ? places : whole);
  const uint32_t max_whole = scientific ? 1 : kMaxWhole;
  if (whole <= max_whole && places <= kMaxPlaces && !(scientific && small)) return;
  whole = places = 0;
  many = true;
}

DigitWords first_words(const NumberTerm& term) {
  if (term.kind != TermKind::kOneOf) return {};
  return pack({0, static_cast<int32_t>(term.values.size()), 0, 0});
}

void add_digit(const NumberTerm& term, int digit, bool fraction, const DigitCount& before,
               const DigitCount& now, DigitWords* words) {
  switch (term.kind) {
    case TermKind::kInteger:
      return add_integer(digit, fraction, before, now, words);
    case TermKind::kPlain:
      (*words)[0] |= fraction ? 1 : 0;
      return;
    case TermKind::kBound:
      return add_bound(term.values[0], digit, fraction, now, words);
    case TermKind::kMultiple:
      return add_multiple(term, digit, fraction, before, now, words);
    case TermKind::kOneOf:
      return add_one_of(term, digit, fraction, now, words);
  }
}

uint32_t digit_borders(const NumberTerm& term, const DigitCount& count, const DigitWords& words) {
  constexpr uint32_t kNonzero = 1U << 1U;
  const auto border = [](int digit) { return 1U << static_cast<uint32_t>(digit); };
  switch (term.kind) {
    case TermKind::kPlain:
      return 0;
    case TermKind::kInteger:
      return kNonzero;
    case TermKind::kBound: {
      const auto [size, order, place] = words;
      const Decimal& limit = term.values[0];
      if (limit.digits.empty()) return kNonzero;
      if (order != 0) return count.nonzero ? 0 : kNonzero;
      const int other = digit_at(limit, place);
      return kNonzero | border(other) | (border(other) << 1U);
    }
    case TermKind::kMultiple:
      return words[2] < 0 ? 0 : kAnyDigit;
    default: {
      const OneOf one = unpack(words);
      uint32_t made = kNonzero;
      for (int32_t i = one.first; i < one.last; ++i) {
        const uint32_t digit = border(digit_at(term.values[static_cast<size_t>(i)], one.place));
        made |= digit | digit << 1U;
      }
      return made;
    }
  }
}

bool is_hopeless(const NumberTerm& term, const DigitCount& count, const DigitWords& words) {
  switch (term.kind) {
    case TermKind::kPlain:
      return words[0] != 0;
    case TermKind::kMultiple:
      return words[2] < 0;
    case TermKind::kOneOf:
      return count.nonzero && words[0] == words[1];
    default:
      return false;
  }
}

ExponentSet exponents_of(const NumberTerm& term, bool minus, bool exponent, const DigitCount& count,
                         const DigitWords& words) {
  switch (term.kind) {
    case TermKind::kInteger: {
      if (!count.nonzero) return all_or_none(true);
      return from(words[1] != 0 ? words[1] : -words[0]);
    }
    case TermKind::kPlain:
      return all_or_none(!exponent && words[0] == 0);
    case TermKind::kBound:
      return bound_exponents(term, minus, count, words);
    case TermKind::kMultiple:
      return multiple_exponents(term, count, words);
    default:
      return one_of_exponents(term, minus, count, words);
  }
}

}  // namespace gen::grammar
