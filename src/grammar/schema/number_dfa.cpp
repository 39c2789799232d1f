// SPDX-License-Identifier: Apache-2.0
// Numbers as automata, see number_dfa.h. Each set has a class that follows the digits before the
// exponent (`add`) and tells for which exponents the number is in the set (`exponents`); Explorer
// makes an automaton of its states.
#include "grammar/schema/number_dfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace gen::grammar {
namespace {


/// A set of exponents: those from `low` on that `middle` names, all below if `below`, all behind
/// the middle if `above`.
struct Exponents {
  bool below = false;
  bool above = false;
  int64_t low = 0;
  std::vector<bool> middle;

  [[nodiscard]] bool has(int64_t exponent) const {
    if (exponent < low) return below;
    const auto at = static_cast<uint64_t>(exponent - low);
    return at < middle.size() ? middle[at] : above;
  }
  [[nodiscard]] int64_t reach() const {
    return std::max(std::abs(low), std::abs(low + static_cast<int64_t>(middle.size()))) + 1;
  }
  auto operator<=>(const Exponents&) const = default;
};

Exponents all_or_none(bool all) { return {all, all, 0, {}}; }

// Digits read so far, as far as they decide whether an exponent may come.
struct Count {
  int whole = 0;
  int places = 0;
  bool too_many = false;
  void add(bool fraction) {
    if (too_many) return;
    ++(fraction ? places : whole);
    // Once it has come to the point, what is before it matters no more.
    if (fraction) whole = 0;
    if (whole > kMostWhole || places > kMostPlaces) *this = {0, 0, true};
  }
  [[nodiscard]] bool many() const { return too_many; }
  auto operator<=>(const Count&) const = default;
};

struct Any {
  Count count;
  void add(int, bool fraction) { count.add(fraction); }
  [[nodiscard]] Exponents exponents(bool) const { return all_or_none(true); }
  [[nodiscard]] bool many() const { return count.many(); }
  [[nodiscard]] bool plain() const { return false; }
  auto operator<=>(const Any&) const = default;
};

struct PlainInteger : Any {
  [[nodiscard]] bool plain() const { return true; }
  auto operator<=>(const PlainInteger&) const = default;
};

struct Integer {
  Count count;
  bool nonzero = false;
  int zeros = 0;  // at the end of what stands before the point
  int places = 0;  // behind it
  int last = 0;    // of them that is not 0
  void add(int digit, bool fraction) {
    count.add(fraction);
    if (fraction) ++places;
    if (digit != 0) {
      nonzero = true;
      zeros = 0;
      if (fraction) last = places;
    } else if (nonzero && !fraction) {
      ++zeros;
    }
    if (last != 0) zeros = 0;
    if (!count.many()) return;
    zeros = places = 0;
    last = last != 0 ? 1 : 0;
  }
  [[nodiscard]] Exponents exponents(bool) const {
    if (!nonzero) return all_or_none(true);
    return {false, true, last != 0 ? last : -zeros, {}};
  }
  [[nodiscard]] bool many() const { return count.many(); }
  [[nodiscard]] bool plain() const { return false; }
  auto operator<=>(const Integer&) const = default;
};

// Against 0.d1d2... * 10^scale.
struct Limit {
  const Decimal* limit = nullptr;
  Bound bound = Bound::kEqual;
  Count count;
  bool nonzero = false;
  int64_t size = 0;    // the number is 0.xyz * 10^size
  int order = 0;       // of the digits so far
  size_t place = 0;    // the next digit to compare

  void add(int digit, bool fraction) {
    count.add(fraction);
    const int64_t most = std::abs(limit->exponent) + kMostWhole + kMostPlaces + 2;
    nonzero |= digit != 0;
    if (limit->digits.empty()) return;
    if (!nonzero) {
      if (fraction) size = std::max(size - 1, -most);
      return;
    }
    if (!fraction) size = std::min(size + 1, most);
    if (order != 0) return;
    const std::string& digits = limit->digits;
    const int other = place < digits.size() ? digits[place] - '0' : 0;
    order = digit < other ? -1 : digit > other ? 1 : 0;
    place = order != 0 ? 0 : std::min(place + 1, digits.size());
  }

  [[nodiscard]] bool fits(int to_limit) const {
    switch (bound) {
      case Bound::kEqual:
        return to_limit == 0;
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

  [[nodiscard]] Exponents exponents(bool minus) const {
    const int sign = limit->digits.empty() ? 0 : limit->negative ? -1 : 1;
    if (!nonzero) return all_or_none(fits(-sign));
    const int own = minus ? -1 : 1;
    if (own != sign) return all_or_none(fits(own));
    const int here = order == 0 && place < limit->digits.size() ? -1 : order;
    Exponents made = {fits(-own), fits(own), limit->exponent - size, {fits(here * own)}};
    return made;
  }
  [[nodiscard]] bool many() const { return count.many(); }
  [[nodiscard]] bool plain() const { return false; }
  auto operator<=>(const Limit&) const = default;
};

// Of divisor * 10^-scale. The number is rest * 10^(zeros - places), `rest` modulo the divisor and
// without zeros at its end. Of many digits it is rest * 10^-places, with at most `scale` places.
struct Multiple {
  uint32_t divisor = 1;
  int64_t scale = 0;
  Count count;
  bool nonzero = false;
  uint32_t rest = 0;
  int64_t zeros = 0;
  int64_t places = 0;
  bool never = false;  // of many digits, and one too far behind the point

  [[nodiscard]] uint32_t shifted(int64_t by) const {
    uint64_t value = rest;
    for (; by > 0; --by) value = value * 10 % divisor;
    return static_cast<uint32_t>(value);
  }
  void put(int digit, int64_t by) {
    rest = (shifted(by) + static_cast<uint32_t>(digit)) % divisor;
  }

  void add(int digit, bool fraction) {
    const bool before = count.many();
    count.add(fraction);
    nonzero |= digit != 0;
    if (before) {
      if (fraction && places == scale) {
        never |= digit != 0;
      } else {
        put(digit, 1);
        if (fraction) ++places;
      }
    } else {
      if (fraction) ++places;
      if (digit != 0) {
        put(digit, zeros + 1);
        zeros = 0;
      } else if (nonzero) {
        ++zeros;
      }
      if (count.many()) settle();
    }
    if (never) rest = 0;
  }

  // From here on no exponent can come.
  void settle() {
    const int64_t last = nonzero ? places - zeros : 0;  // the last place that is not 0
    never = last > scale;
    const int64_t kept = std::min(places, scale);
    rest = shifted(kept - last);
    places = kept;
    zeros = 0;
  }

  [[nodiscard]] Exponents exponents(bool) const {
    if (!nonzero) return all_or_none(true);
    if (many()) return all_or_none(!never && shifted(scale - places) == 0);
    // The number over 10^-scale is rest * 10^(e + shift); from 0 on that is whole.
    const int64_t shift = scale - places + zeros;
    Exponents made = {false, false, -shift, {}};
    uint64_t value = rest;
    for (int i = 0; i < 20; ++i) {
      made.middle.push_back(value % divisor == 0);
      value = value * 10 % divisor;
    }
    made.above = value == 0;
    return made;
  }
  [[nodiscard]] bool many() const { return count.many(); }
  [[nodiscard]] bool plain() const { return false; }
  auto operator<=>(const Multiple&) const = default;
};

enum class Phase : uint8_t {
  kStart,
  kMinus,
  kZero,
  kWhole,
  kPoint,
  kFraction,
  kExponent,
  kSign,
  kDigits,
};

template <typename Digits>
class Explorer {
 public:
  Explorer(Digits first, const DfaFuel& fuel) : fuel_(fuel) {
    State start;
    start.digits = std::move(first);
    (void)number(start);
  }

  Result<Dfa> run() {
    Dfa made;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_.size() > 8 * fuel_.states) {
        return error(Code::kGrammar, "numbers take an automaton of more than %zu states",
                     8 * fuel_.states);
      }
      const State state = *states_[i];
      Dfa::State out;
      out.final = final(state);
      const auto edge = [&](char low, char high, const std::optional<State>& to) {
        if (!to) return;
        const uint32_t target = number(*to);
        out.edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), target});
      };
      edge('+', '+', behind_sign(state, false));
      edge('-', '-', behind_sign(state, true));
      edge('.', '.', behind_point(state));
      for (char c = '0'; c <= '9'; ++c) edge(c, c, behind_digit(state, c - '0'));
      edge('E', 'E', behind_e(state));
      edge('e', 'e', behind_e(state));
      made.states.push_back(std::move(out));
    }
    return minimise(made);
  }

 private:
  struct State {
    Phase phase = Phase::kStart;
    bool minus = false;
    Digits digits{};
    uint32_t set = 0;  // of exponents, behind the e
    bool negative = false;
    int64_t exponent = 0;
    auto operator<=>(const State&) const = default;
  };

  uint32_t number(const State& state) {
    const auto [place, added] =
        known_.try_emplace(state, static_cast<uint32_t>(states_.size()));
    if (added) states_.push_back(&place->first);
    return place->second;
  }

  bool final(const State& s) const {
    switch (s.phase) {
      case Phase::kZero:
      case Phase::kWhole:
      case Phase::kFraction:
        return s.digits.exponents(s.minus).has(0);
      case Phase::kDigits:
        return sets_[s.set].has(s.negative ? -s.exponent : s.exponent);
      default:
        return false;
    }
  }

  std::optional<State> behind_sign(State s, bool minus) const {
    if (s.phase == Phase::kStart && minus) {
      s.phase = Phase::kMinus;
      s.minus = true;
      return s;
    }
    if (s.phase != Phase::kExponent) return {};
    s.phase = Phase::kSign;
    s.negative = minus;
    return s;
  }

  std::optional<State> behind_point(State s) const {
    if ((s.phase != Phase::kZero && s.phase != Phase::kWhole) || s.digits.plain()) return {};
    s.phase = Phase::kPoint;
    return s;
  }

  std::optional<State> behind_e(State s) {
    const bool digits =
        s.phase == Phase::kZero || s.phase == Phase::kWhole || s.phase == Phase::kFraction;
    if (!digits || s.digits.plain() || s.digits.many()) return {};
    const Exponents exponents = s.digits.exponents(s.minus);
    auto place = std::find(sets_.begin(), sets_.end(), exponents);
    State made;
    made.phase = Phase::kExponent;
    made.set = static_cast<uint32_t>(place - sets_.begin());
    if (place == sets_.end()) sets_.push_back(exponents);
    return made;
  }

  std::optional<State> behind_digit(State s, int digit) const {
    switch (s.phase) {
      case Phase::kStart:
      case Phase::kMinus:
        s.phase = digit == 0 ? Phase::kZero : Phase::kWhole;
        s.digits.add(digit, false);
        return s;
      case Phase::kZero:
        return {};
      case Phase::kWhole:
        s.digits.add(digit, false);
        return s;
      case Phase::kPoint:
      case Phase::kFraction:
        s.phase = Phase::kFraction;
        s.digits.add(digit, true);
        return s;
      default:
        s.phase = Phase::kDigits;
        s.exponent = std::min(s.exponent * 10 + digit, sets_[s.set].reach());
        return s;
    }
  }

  const DfaFuel fuel_;
  std::map<State, uint32_t> known_;
  std::vector<const State*> states_;
  std::vector<Exponents> sets_;
};

template <typename Digits>
Result<Dfa> explore(Digits first, const DfaFuel& fuel) {
  return Explorer<Digits>(std::move(first), fuel).run();
}

}  // namespace

Dfa number_texts() { return explore(Any(), DfaFuel()).value(); }

Dfa short_digits(uint32_t most) {
  Dfa made;
  made.states.resize(size_t{most} + 1);
  for (uint32_t n = 0; n <= most; ++n) {
    Dfa::State& state = made.states[n];
    state.final = true;
    state.edges.push_back({0, '0' - 1, 0});
    if (n < most) state.edges.push_back({'0', '9', n + 1});
    state.edges.push_back({'9' + 1, 255, 0});
  }
  return made;
}

Dfa integer_texts(bool plain) {
  return plain ? explore(PlainInteger(), DfaFuel()).value() : explore(Integer(), DfaFuel()).value();
}

Result<Dfa> bounded_texts(const Decimal& limit, Bound bound, const DfaFuel& fuel) {
  if (std::abs(limit.exponent) > 4096) {
    return error(Code::kGrammar, "a bound beyond 10^4096");
  }
  Limit first;
  first.limit = &limit;
  first.bound = bound;
  return explore(first, fuel);
}

Result<Dfa> multiple_texts(const Decimal& divisor, const DfaFuel& fuel) {
  Multiple first;
  uint64_t value = 0;
  for (const char c : divisor.digits) {
    value = value * 10 + static_cast<uint64_t>(c - '0');
    if (value > 65536) return error(Code::kGrammar, "a divisor of more digits than 65536");
  }
  first.scale = static_cast<int64_t>(divisor.digits.size()) - divisor.exponent;
  for (; first.scale < 0 && value <= 65536; ++first.scale) value *= 10;
  if (first.scale < 0 || first.scale > 100 || value > 65536) {
    return error(Code::kGrammar, "a divisor above 65536 or of more than 100 places");
  }
  first.divisor = static_cast<uint32_t>(value);
  return explore(first, fuel);
}

}  // namespace gen::grammar
