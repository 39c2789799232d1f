// SPDX-License-Identifier: Apache-2.0
// Automata of numbers, see number_dfa.h. States before the exponent are explored with the words of
// number_digits.h; after the e only the set of exponents matters. Both are numbered backwards from
// their ends, with equal numbers for equivalent ones, so the result is minimal, unless remainders
// form cycles.
#include "grammar/schema/number_dfa.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "grammar/base/hash.h"
#include "grammar/base/hash_index.h"
#include "grammar/schema/number_digits.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kDead = UINT32_MAX;
constexpr uint32_t kSelf = UINT32_MAX - 1;
constexpr int64_t kMaxDfaExponent = 4096;
// In nodes visited.
constexpr uint64_t kWorkPerDigitState = 128;
constexpr uint64_t kWorkPerTerm = 16;

// States identified by their behaviour.
class NumberNodes {
 public:
  struct Node {
    std::vector<ByteEdge> edges;
    bool final = false;
  };

  // Edges in order, possibly to kDead or kSelf; kDead if no end can be reached.
  uint32_t number(std::vector<ByteEdge> edges, bool final) {
    std::erase_if(edges, [](const ByteEdge& edge) { return edge.target == kDead; });
    size_t kept = 0;
    for (size_t i = 1; i < edges.size(); ++i) {
      if (edges[kept].target == edges[i].target && edges[kept].high + 1 == edges[i].low) {
        edges[kept].high = edges[i].high;
      } else {
        edges[++kept] = edges[i];
      }
    }
    if (!edges.empty()) edges.resize(kept + 1);
    const bool only_self = std::all_of(edges.begin(), edges.end(),
                                       [](const ByteEdge& edge) { return edge.target == kSelf; });
    if (!final && only_self) return kDead;
    // It may be equivalent to its own target.
    for (const ByteEdge& edge : edges) {
      if (edge.target != kSelf && alike(edge.target, edges, final)) return edge.target;
    }
    uint64_t hash = final ? 1 : 0;
    for (const ByteEdge& edge : edges) {
      hash = mix(hash,
                 static_cast<uint64_t>(edge.target) << 16U | uint64_t{edge.low} << 8U | edge.high);
    }
    const uint32_t known = known_.find(hash, [&](uint32_t node) {
      return nodes_[node].final == final && same(nodes_[node].edges, edges);
    });
    if (known != HashIndex::kNone) return known;
    const auto made = static_cast<uint32_t>(nodes_.size());
    known_.add(hash, made);
    nodes_.push_back({std::move(edges), final});
    return made;
  }

  [[nodiscard]] Dfa from(uint32_t start) const {
    Dfa made;
    if (start == kDead) return made;
    std::vector<uint32_t> number(nodes_.size(), kDead);
    std::vector<uint32_t> order = {start};
    number[start] = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& node = nodes_[order[i]];
      Dfa::State state;
      state.final = node.final;
      state.edges.assign(node.edges);
      for (ByteEdge& edge : state.edges) {
        const uint32_t old = edge.target == kSelf ? order[i] : edge.target;
        if (number[old] == kDead) {
          number[old] = static_cast<uint32_t>(order.size());
          order.push_back(old);
        }
        edge.target = number[old];
      }
      made.states.push_back(std::move(state));
    }
    return made;
  }

  [[nodiscard]] const Node& at(uint32_t node) const { return nodes_[node]; }

 private:
  static bool same(const std::vector<ByteEdge>& a, const std::vector<ByteEdge>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  [[nodiscard]] bool alike(uint32_t node, const std::vector<ByteEdge>& edges, bool final) const {
    const Node& other = nodes_[node];
    return other.final == final &&
           std::equal(edges.begin(), edges.end(), other.edges.begin(), other.edges.end(),
                      [&](const ByteEdge& x, const ByteEdge& y) {
                        const uint32_t target = x.target == kSelf ? node : x.target;
                        const uint32_t of_other = y.target == kSelf ? node : y.target;
                        return x.low == y.low && x.high == y.high && target == of_other;
                      });
  }

  std::vector<Node> nodes_;
  HashIndex known_;
};

// The texts after an e.
class ExponentNodes {
 public:
  explicit ExponentNodes(NumberNodes* nodes) : nodes_(*nodes) {}

  uint32_t behind_e(const ExponentSet& set) {
    const auto [place, added] = known_.try_emplace(set, kDead);
    if (!added) return place->second;
    const std::vector<ByteEdge> plus = first_digits(set, 1);
    const uint32_t positive = nodes_.number(plus, false);
    const uint32_t negative = nodes_.number(first_digits(set, -1), false);
    std::vector<ByteEdge> edges = {{'+', '+', positive}, {'-', '-', negative}};
    edges.insert(edges.end(), plus.begin(), plus.end());
    return place->second = nodes_.number(std::move(edges), false);
  }

 private:
  std::vector<ByteEdge> first_digits(const ExponentSet& set, int sign) {
    std::vector<ByteEdge> edges;
    for (int digit = 0; digit < 10; ++digit) {
      const auto c = static_cast<uint8_t>('0' + digit);
      edges.push_back({c, c, value(set, sign, digit)});
    }
    return edges;
  }

  // After digits of this value.
  uint32_t value(const ExponentSet& set, int sign, int64_t number) {
    const int64_t reach = set.reach();
    if (number >= reach) {
      if (!(sign > 0 ? set.above() : set.below)) return kDead;
      if (any_ == kDead) any_ = nodes_.number({{'0', '9', kSelf}}, true);
      return any_;
    }
    if (number > 0 && number * 10 >= reach) {
      return nodes_.number({{'0', '9', value(set, sign, reach)}}, set.has(sign * number));
    }
    std::vector<ByteEdge> edges;
    for (int digit = 0; digit < 10; ++digit) {
      const auto c = static_cast<uint8_t>('0' + digit);
      const bool itself = number == 0 && digit == 0;
      edges.push_back({c, c, itself ? kSelf : value(set, sign, number * 10 + digit)});
    }
    return nodes_.number(std::move(edges), set.has(sign * number));
  }

  NumberNodes& nodes_;
  uint32_t any_ = kDead;  // any digits, including none
  std::map<ExponentSet, uint32_t> known_;
};

class Explorer {
 public:
  Explorer(std::span<const NumberLiteral> all, const DfaFuel& fuel)
      : all_(all), fuel_(fuel), exponents_(&nodes_) {
    for (const NumberLiteral& one : all) {
      signed_ |=
          one.term->kind == NumberTerm::Kind::kBound || one.term->kind == NumberTerm::Kind::kOneOf;
      rings_ |= one.term->kind == NumberTerm::Kind::kMultiple;
      scientific_ |=
          one.term->kind == NumberTerm::Kind::kOneOf && one.term->values.size() > kMaxFree;
    }
  }

  Result<Dfa> run() {
    for (const NumberLiteral& one : all_) now_.push_back(first_words(*one.term));
    number(State(), now_);
    for (size_t i = 0; i < states_.size(); ++i) {
      // A state takes a word for each term.
      const size_t most = 8 * fuel_.states / std::max<size_t>(1, all_.size() / 8);
      if (states_.size() > most) {
        return error(Code::kGrammar, "numbers take an automaton of more than %zu states", most);
      }
      if (!goes_on(fuel_.building, kWorkPerDigitState + kWorkPerTerm * all_.size())) {
        return fuel_.building->status();
      }
      expand(i);
    }
    return rings_ ? minimise(written_out()) : nodes_.from(numbered());
  }

 private:
  enum class Phase : uint8_t { kStart, kMinus, kZero, kWhole, kPoint, kFraction };
  struct State {
    Phase phase = Phase::kStart;
    bool minus = false;
    DigitCount count;
  };
  using Words = std::vector<DigitWords>;  // of all terms
  struct Edges {
    std::vector<ByteEdge> to;   // by byte, to other states
    uint32_t behind_e = kDead;  // a node
    bool final = false;
  };

  static uint64_t hash_of(const State& s, const Words& all) {
    uint64_t hash = static_cast<uint64_t>(s.phase) | (s.minus ? 8U : 0U) |
                    (s.count.many ? 16U : 0U) | (s.count.nonzero ? 32U : 0U);
    hash = mix(hash, static_cast<uint64_t>(s.count.whole) << 32 | s.count.places);
    for (const DigitWords& words : all) {
      for (const int32_t word : words) hash = mix(hash, static_cast<uint32_t>(word));
    }
    return hash;
  }
  [[nodiscard]] bool equal(uint32_t index, const State& b, const Words& words) const {
    const State& a = states_[index];
    return a.phase == b.phase && a.minus == b.minus && a.count == b.count &&
           std::equal(words.begin(), words.end(), words_.begin() + first_word(index));
  }
  [[nodiscard]] std::ptrdiff_t first_word(size_t index) const {
    return static_cast<std::ptrdiff_t>(index * all_.size());
  }

  uint32_t number(const State& state, const Words& words) {
    const uint64_t hash = hash_of(state, words);
    const uint32_t known =
        known_.find(hash, [&](uint32_t other) { return equal(other, state, words); });
    if (known != HashIndex::kNone) return known;
    const auto made = static_cast<uint32_t>(states_.size());
    known_.add(hash, made);
    states_.push_back(state);
    words_.insert(words_.end(), words.begin(), words.end());
    edges_.emplace_back();
    return made;
  }

  [[nodiscard]] ExponentSet exponents(const State& s, bool exponent) const {
    ExponentSet made = {true, {}};
    for (size_t i = 0; i < all_.size(); ++i) {
      ExponentSet one = exponents_of(*all_[i].term, s.minus, exponent, s.count, now_[i]);
      if (all_[i].negated) one = ~std::move(one);
      made = i == 0 ? std::move(one) : made & one;
    }
    return made;
  }

  [[nodiscard]] bool hopeless(const State& state) const {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].negated && is_hopeless(*all_[i].term, state.count, behind_[i])) return true;
    }
    return false;
  }

  void expand(size_t index) {
    const State state = states_[index];  // a copy, because numbering reallocates the states
    now_.assign(words_.begin() + first_word(index), words_.begin() + first_word(index + 1));
    Edges made;
    const Phase phase = state.phase;
    const bool digits =
        phase == Phase::kZero || phase == Phase::kWhole || phase == Phase::kFraction;
    if (phase == Phase::kStart) {
      State minus = state;
      minus.phase = Phase::kMinus;
      minus.minus = signed_;
      made.to.push_back({'-', '-', number(minus, now_)});
    }
    if (phase == Phase::kZero || phase == Phase::kWhole) {
      State point = state;
      point.phase = Phase::kPoint;
      made.to.push_back({'.', '.', number(point, now_)});
    }
    if (phase != Phase::kZero) add_digits(state, &made.to);
    if (digits) {
      made.final = exponents(state, false).has(0);
      if (!state.count.many) made.behind_e = exponents_.behind_e(exponents(state, true));
    }
    edges_[index] = std::move(made);
  }

  void add_digits(const State& state, std::vector<ByteEdge>* to) {
    const bool first = state.phase == Phase::kStart || state.phase == Phase::kMinus;
    const bool fraction = state.phase == Phase::kPoint || state.phase == Phase::kFraction;
    uint32_t borders = first || !state.count.nonzero ? 1U << 1U : 0;
    for (size_t i = 0; i < all_.size(); ++i) {
      borders |= digit_borders(*all_[i].term, state.count, now_[i]);
    }
    for (int digit = 0; digit < 10;) {
      int next = digit + 1;
      while (next < 10 && (borders >> static_cast<uint32_t>(next) & 1U) == 0) ++next;
      State behind = state;
      behind.phase = fraction              ? Phase::kFraction
                     : first && digit == 0 ? Phase::kZero
                                           : Phase::kWhole;
      behind.count.add(fraction, digit, scientific_);
      behind_ = now_;
      for (size_t i = 0; i < all_.size(); ++i) {
        add_digit(*all_[i].term, digit, fraction, state.count, behind.count, &behind_[i]);
      }
      if (!hopeless(behind)) {
        to->push_back({static_cast<uint8_t>('0' + digit), static_cast<uint8_t>('0' + next - 1),
                       number(behind, behind_)});
      }
      digit = next;
    }
  }

  // Targets first; the only cycles are self-loops.
  uint32_t numbered() {
    std::vector<uint32_t> nodes(states_.size(), kSelf);
    std::vector<uint32_t> open = {0};
    while (!open.empty()) {
      const uint32_t at = open.back();
      const size_t waiting = open.size();
      for (const ByteEdge& edge : edges_[at].to) {
        if (edge.target != at && nodes[edge.target] == kSelf) open.push_back(edge.target);
      }
      if (open.size() > waiting) continue;
      open.pop_back();
      if (nodes[at] != kSelf) continue;
      std::vector<ByteEdge> edges = edges_[at].to;
      for (ByteEdge& edge : edges) edge.target = edge.target == at ? kSelf : nodes[edge.target];
      const uint32_t e = edges_[at].behind_e;
      edges.push_back({'E', 'E', e});
      edges.push_back({'e', 'e', e});
      nodes[at] = nodes_.number(std::move(edges), edges_[at].final);
    }
    return nodes[0];
  }

  // All states, followed by the nodes of exponents.
  [[nodiscard]] Dfa written_out() const {
    Dfa made;
    for (const Edges& edges : edges_) {
      Dfa::State& state = made.states.emplace_back();
      state.final = edges.final;
      state.edges.assign(edges.to);
    }
    std::unordered_map<uint32_t, uint32_t> number;
    std::vector<uint32_t> open;
    const auto number_of = [&](uint32_t node) {
      const auto [place, added] = number.try_emplace(node, made.states.size());
      if (added) {
        made.states.emplace_back();
        open.push_back(node);
      }
      return place->second;
    };
    for (size_t i = 0; i < edges_.size(); ++i) {
      if (edges_[i].behind_e == kDead) continue;
      const uint32_t target = number_of(edges_[i].behind_e);
      made.states[i].edges.push_back({'E', 'E', target});
      made.states[i].edges.push_back({'e', 'e', target});
    }
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      std::vector<ByteEdge> edges = nodes_.at(node).edges;
      for (ByteEdge& edge : edges)
        edge.target = number_of(edge.target == kSelf ? node : edge.target);
      Dfa::State& state = made.states[number[node]];
      state.final = nodes_.at(node).final;
      state.edges.assign(edges);
    }
    return made;
  }

  const std::span<const NumberLiteral> all_;
  const DfaFuel fuel_;
  bool signed_ = false;
  bool rings_ = false;
  bool scientific_ = false;
  NumberNodes nodes_;
  ExponentNodes exponents_;
  HashIndex known_;
  std::vector<State> states_;
  Words words_;   // of all states, in order
  Words now_;     // of the current state
  Words behind_;  // of one of its targets
  std::vector<Edges> edges_;
};

Status check_exponent(const Decimal& value) {
  if (std::abs(value.exponent) <= kMaxDfaExponent) return {};
  return error(Code::kGrammar, "a number beyond 10^%lld, either way",
               static_cast<long long>(kMaxDfaExponent));
}

}  // namespace

Result<NumberTerm> NumberTerm::bounded(Decimal limit, Bound bound) {
  GEN_TRY(check_exponent(limit));
  NumberTerm made;
  made.kind = Kind::kBound;
  made.bound = bound;
  made.values.push_back(std::move(limit));
  return made;
}

Result<NumberTerm> NumberTerm::one_of(std::vector<Decimal> values) {
  for (const Decimal& value : values) {
    GEN_TRY(check_exponent(value));
    if (value.digits.size() > kMaxListedDigits) {
      return error(Code::kGrammar, "a listed number of more than %zu digits", kMaxListedDigits);
    }
  }
  std::sort(values.begin(), values.end(),
            [](const Decimal& a, const Decimal& b) { return a.key() < b.key(); });
  values.erase(std::unique(values.begin(), values.end()), values.end());
  NumberTerm made;
  made.kind = Kind::kOneOf;
  made.values = std::move(values);
  return made;
}

Result<NumberTerm> NumberTerm::multiple(const Decimal& divisor) {
  GEN_TRY(check_exponent(divisor));
  if (divisor.digits.size() > 17) return error(Code::kGrammar, "a divisor of more than 17 digits");
  uint64_t value = 0;
  for (const char c : divisor.digits) value = value * 10 + static_cast<uint64_t>(c - '0');
  NumberTerm made;
  made.kind = Kind::kMultiple;
  made.divisor = value;
  made.scale = static_cast<int64_t>(divisor.digits.size()) - divisor.exponent;
  return made;
}

Result<Dfa> number_texts(std::span<const NumberLiteral> all, const DfaFuel& fuel) {
  return Explorer(all, fuel).run();
}

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

}  // namespace gen::grammar
