// SPDX-License-Identifier: Apache-2.0
// Arrays as expressions: the first items individually, all others counted. Where items must be
// counted by their content (contains), the counts are nodes of a diagram. Items that must differ
// are members that occur once if they have few possible values; otherwise the array is watched
// beside the grammar (json_text.h).
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "grammar/json/json_text.h"
#include "grammar/schema/builders.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

using What = Constraint::Kind;

constexpr uint32_t kMaxNodes = 4096;
constexpr size_t kMaxCounters = 16;
constexpr size_t kMaxDistinct = MemberSet::kBits;

// The items that match `rest`, counted from number `from` on.
struct Counter {
  Literals rest;
  uint32_t from = 0;
  uint32_t min = 0;
  uint32_t max = kUnbounded;
};

class ArrayBuilder {
 public:
  ArrayBuilder(const JsonParts& parts, ClauseMaker& maker, const Clause& clause)
      : parts_(parts), to_(*parts.to), maker_(maker), clause_(clause) {}

  Result<ExprId> run() {
    size_ = ClauseMaker::size_of(clause_);
    for (const Constraint& one : clause_.constraints) {
      switch (one.kind) {
        case What::kItems:
          n_first_ = std::max(n_first_, static_cast<uint32_t>(one.literals.size()));
          break;
        case What::kItem:
          n_first_ = std::max(n_first_, one.min + 1);
          break;
        case What::kContains:
          counters_.push_back({one.rest, 0, one.min, one.max});
          break;
        case What::kSomeBehind:
          counters_.push_back({one.rest, one.min, 1, kUnbounded});
          n_first_ = std::max(n_first_, one.min);
          break;
        case What::kUnique:
          (one.negated ? repeats_ : unique_) = one.schema;
          break;
        default:
          break;
      }
    }
    n_first_ = std::min(n_first_, size_.max);
    std::erase_if(counters_, [](const Counter& c) { return c.min == 0 && c.max == kUnbounded; });
    if (repeats_ != nullptr && (unique_ != nullptr || size_.max <= 1)) return Expressions::kNever;
    if (size_.max <= 1) unique_ = nullptr;
    ByteSet comma = ByteSet::one(',');
    ByteSet end = ByteSet::one(']');
    if (unique_ != nullptr) GEN_TRY(settle());
    if (size_.min > size_.max) return Expressions::kNever;
    if (parts_.form != nullptr) {
      comma_ = parts_.form->array().between;
      end_ = parts_.form->array().close;
    }
    if (unique_ != nullptr) {
      GEN_ASSIGN(const std::optional<ExprId> made, distinct());
      if (made) return *made;
      if (!parts_.watched && parts_.relax != nullptr) {
        parts_.relax(unique_, "uniqueItems");
        unique_ = nullptr;
      } else {
        GEN_TRY(check_watched());
        end.add(kEndApart);
      }
    } else if (parts_.watched) {
      comma.add(kCommaAgain);
      end.add(kEndAgain);
      if (repeats_ == nullptr) end.add(kEndApart);
    }
    if (repeats_ != nullptr) GEN_TRY(check_repeats());
    if (parts_.form == nullptr) {
      comma_ = parts_.all({to_.bytes(comma), parts_.space});
      end_ = to_.bytes(end);
    }
    return counters_.empty() ? plain() : counted();
  }

 private:
  Literals literals_of(uint32_t index) const {
    Literals made;
    for (const Constraint& one : clause_.constraints) {
      if (one.kind == What::kItems) {
        if (index < one.literals.size()) {
          made.push_back(one.literals[index]);
        } else {
          made.insert(made.end(), one.rest.begin(), one.rest.end());
        }
      }
      if (one.kind == What::kItem && one.min == index) {
        made.insert(made.end(), one.rest.begin(), one.rest.end());
      }
    }
    return made;
  }

  Result<ExprId> item(const Literals& literals) {
    GEN_ASSIGN(const ExprId value, parts_.item(literals));
    return parts_.all({value, parts_.space});
  }

  // Items, or none if there may be none.
  ExprId some_or_none(ExprId items, bool none) {
    if (parts_.form == nullptr) {
      return whole(parts_.any({items, none ? Expressions::kEmpty : Expressions::kNever}));
    }
    const ExprId some = parts_.all({parts_.form->array().open, items, end_});
    return parts_.any({some, none ? parts_.form->array().none : Expressions::kNever});
  }

  ExprId whole(ExprId inside) {
    const bool watched = unique_ != nullptr || repeats_ != nullptr;
    const ExprId mark =
        watched ? to_.repeat(to_.bytes(ByteSet::one(kDiffers)), 0, 1) : Expressions::kEmpty;
    return parts_.all({parts_.byte('['), mark, parts_.space, inside, end_});
  }

  [[nodiscard]] std::string unwatched() const {
    const std::string& why = maker_.options().unwatched;
    return why.empty() ? "" : ", " + why;
  }

  // Whether the rule can be enforced beside the grammar: whatever the items so far, every mandatory
  // item must be able to differ from them.
  Status check_watched() {
    if (!parts_.watched) {
      return maker_.refuse(unique_, "uniqueItems",
                           "of items that may have more than 256 values" + unwatched());
    }
    if (!counters_.empty()) return check_counter();
    for (uint32_t i = settled_; i <= n_first_; ++i) {
      const uint32_t needed = i < n_first_ ? i + 1 : size_.min;
      if (needed < 2 || i >= size_.min) continue;
      GEN_ASSIGN(const bool enough, maker_.has_values(literals_of(i), needed));
      if (enough) continue;
      const std::string which = n_first_ > 0 ? "of item " + std::to_string(i) : "of items";
      return maker_.refuse(
          unique_, "uniqueItems",
          which + ", which may have less than " + std::to_string(needed) + " values");
    }
    return {};
  }

  // Missing items can always differ if each kind of them has enough values: for items that count,
  // the number of used values is known.
  Status check_counter() {
    const Counter& one = counters_[0];
    if (counters_.size() > 1 || n_first_ > 0 || one.rest.size() != 1) {
      return maker_.refuse(unique_, "uniqueItems",
                           "together with contains and other limits of single items");
    }
    Literals counted = literals_of(0);
    Literals others = counted;
    counted.push_back(one.rest[0]);
    if (one.max != kUnbounded) others.push_back(!one.rest[0]);
    const auto check = [&](const Literals& literals, uint32_t count, const char* which) -> Status {
      if (count <= 1) return {};  // a single item cannot be a duplicate
      GEN_ASSIGN(const bool enough, maker_.has_values(literals, count));
      if (enough) return {};
      return maker_.refuse(unique_, "uniqueItems",
                           std::string("of items that contains ") + which +
                               ", which may have less than " + std::to_string(count) + " values");
    };
    GEN_TRY(check(counted, one.min, "counts"));
    return check(others, size_.min > one.min ? size_.min : 0, "need not count");
  }

  // Whether an item can always be repeated: the first one, if there may be as many as required.
  Status check_repeats() {
    // Masks examine closing brackets after items that must differ; with fewer items none may occur.
    size_.min = std::max(size_.min, 2U);
    if (!parts_.watched) {
      return maker_.refuse(repeats_, "uniqueItems",
                           "its negation is not supported here" + unwatched());
    }
    if (size_.max == kUnbounded && n_first_ == 0 && counters_.empty()) return {};
    return maker_.refuse(repeats_, "uniqueItems",
                         "its negation together with maxItems, contains or single items");
  }

  // For first items with one value each, such as const, it is decided at compile time whether they
  // differ.
  Status settle() {
    const uint32_t last = std::min({n_first_, size_.max, uint32_t{kMaxDistinct}});
    std::vector<const JsonValue*> all;
    for (; settled_ < last; ++settled_) {
      std::vector<const JsonValue*> values;
      GEN_ASSIGN(const bool few, maker_.few_values(literals_of(settled_), 1, &values));
      if (!few) return {};
      const bool none = values.empty() || std::any_of(all.begin(), all.end(), [&](const auto* one) {
                          return json_equal(*one, *values[0]);
                        });
      if (none) {  // and no array is that long
        size_.max = settled_;
        n_first_ = settled_;
        break;
      }
      all.push_back(values[0]);
    }
    if (settled_ >= size_.max) unique_ = nullptr;
    return {};
  }

  // From the end: the rest, then one more item before it.
  Result<ExprId> plain() {
    GEN_ASSIGN(const ExprId other, item(literals_of(n_first_)));
    const ExprId next = parts_.all({comma_, other});
    ExprId behind = Expressions::kEmpty;  // after the previous items
    const uint32_t min = size_.min > n_first_ ? size_.min - n_first_ : 0;
    const uint32_t max = size_.max == kUnbounded ? kUnbounded : size_.max - n_first_;
    if (n_first_ > 0) {
      behind = to_.repeat(next, min, max);
    } else if (max == 0) {
      return some_or_none(Expressions::kNever, true);
    } else {
      const uint32_t less = max == kUnbounded ? kUnbounded : max - 1;
      const ExprId some = parts_.all({other, to_.repeat(next, min > 0 ? min - 1 : 0, less)});
      return some_or_none(some, min == 0);
    }
    for (uint32_t i = n_first_ - 1; i > 0; --i) {
      GEN_ASSIGN(const ExprId here, item(literals_of(i)));
      const ExprId some = parts_.all({comma_, here, behind});
      behind = parts_.any({some, i >= size_.min ? Expressions::kEmpty : Expressions::kNever});
    }
    GEN_ASSIGN(const ExprId first, item(literals_of(0)));
    return some_or_none(parts_.all({first, behind}), size_.min == 0);
  }

  Result<ExprId> counted() {
    // Nodes: the number of items, as far as it matters, and the count of each counter.
    const bool sized = size_.min > 0 || size_.max != kUnbounded;
    const uint32_t last =
        std::max(sized ? (size_.max != kUnbounded ? size_.max : size_.min) : 0, n_first_);
    std::map<std::vector<uint32_t>, uint32_t> known;
    std::vector<std::vector<uint32_t>> nodes;
    const auto node = [&](std::vector<uint32_t> state) {
      const auto [place, added] = known.try_emplace(std::move(state), nodes.size());
      if (added) nodes.push_back(place->first);
      return place->second;
    };
    if (counters_.size() > kMaxCounters) {
      return maker_.refuse(clause_.done[0].schema, "contains", "too many counts");
    }
    Diagram diagram;
    node(std::vector<uint32_t>(counters_.size() + 2, 0));  // the last element: whether there are
                                                           // any items
    for (uint32_t at = 0; at < nodes.size(); ++at) {
      if (nodes.size() > kMaxNodes) {
        return maker_.refuse(clause_.done[0].schema, "contains", "too many counts");
      }
      const std::vector<uint32_t> state = nodes[at];
      bool final = state[0] >= size_.min || !sized;
      for (size_t c = 0; c < counters_.size(); ++c)
        final = final && state[c + 1] >= counters_[c].min;
      diagram.final.push_back(final);
      if (size_.max != kUnbounded && state[0] == size_.max) continue;
      const ExprId begin = state.back() != 0 ? comma_ : Expressions::kEmpty;
      // All combinations of counters that count this item and counters that must not.
      const size_t n_ways = size_t{1} << counters_.size();
      for (size_t way = 0; way < n_ways; ++way) {
        GEN_TRY(maker_.spend(clause_.done[0].schema));
        std::vector<uint32_t> to = state;
        to.back() = 1;
        to[0] = std::min(state[0] + 1, last);
        Literals literals = literals_of(state[0]);
        bool possible = true;
        for (size_t c = 0; c < counters_.size(); ++c) {
          const Counter& counter = counters_[c];
          const bool counts = (way >> c & 1) != 0;
          const bool limited = counter.max != kUnbounded;
          const bool enough = !limited && state[c + 1] == counter.min;
          if (counts) {
            possible = possible && !enough && state[0] >= counter.from &&
                       !(limited && state[c + 1] == counter.max);
            literals.insert(literals.end(), counter.rest.begin(), counter.rest.end());
            ++to[c + 1];
          } else if (limited) {
            // What must not hold is a single literal.
            for (const Literal literal : counter.rest) {
              literals.push_back(!literal);
            }
          }
        }
        if (!possible) continue;
        GEN_ASSIGN(const ExprId here, item(literals));
        if (here == Expressions::kNever) continue;
        const uint32_t target = node(std::move(to));
        diagram.transitions.push_back({at, target, parts_.all({begin, here})});
      }
    }
    if (parts_.form == nullptr) return whole(to_.diagram(std::move(diagram)));
    // Nothing leads back to the start.
    const bool none = diagram.final[0];
    diagram.final[0] = false;
    return some_or_none(to_.diagram(std::move(diagram)), none);
  }

  // All items have few possible values: they become members that occur once, in any order.
  Result<std::optional<ExprId>> distinct() {
    using Made = std::optional<ExprId>;
    if (n_first_ > 0 || !counters_.empty()) return Made();
    const Literals literals = literals_of(0);
    std::vector<const JsonValue*> values;
    GEN_ASSIGN(const bool few, maker_.few_values(literals, kMaxDistinct, &values));
    if (!few) return Made();
    MemberList list;
    list.min = std::max(size_.min, 1U);
    list.max = size_.max;
    list.separator = parts_.form == nullptr ? parts_.comma : comma_;
    for (const JsonValue* value : values) {
      Literals exact = literals;
      exact.push_back(maker_.exactly(*value));
      GEN_ASSIGN(const ExprId body, item(exact));
      list.members.push_back(
          {body, MemberSet::bit(static_cast<uint32_t>(list.members.size())), true});
    }
    const ExprId members = values.empty() ? Expressions::kNever : to_.members(std::move(list));
    if (parts_.form == nullptr) {
      ByteSet end = ByteSet::one(']');
      end.add(kEndApart);  // for an array that is watched for another schema
      end_ = to_.bytes(end);
    }
    unique_ = nullptr;  // needs no watching
    return Made(some_or_none(members, size_.min == 0));
  }

  const JsonParts& parts_;
  Expressions& to_;
  ClauseMaker& maker_;
  const Clause& clause_;
  Lengths size_;
  uint32_t n_first_ = 0;
  std::vector<Counter> counters_;
  const JsonValue* unique_ = nullptr;
  const JsonValue* repeats_ = nullptr;  // if two items must be equal
  uint32_t settled_ = 0;                // items that differ in any case
  ExprId comma_ = 0;                    // with white space after it
  ExprId end_ = 0;
};

}  // namespace

Result<ExprId> array_expression(const JsonParts& parts, ClauseMaker& maker, const Clause& clause) {
  return ArrayBuilder(parts, maker, clause).run();
}

}  // namespace gen::grammar
