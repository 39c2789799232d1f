// SPDX-License-Identifier: Apache-2.0
// Objects as expressions. Names that the clause mentions are separate members, which occur at most
// once. All other names are partitioned into regions by the patterns they match, and a region's
// members may be repeated. A member that must match something (kSomeMember) is one more region.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "grammar/schema/builders.h"
#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

using What = Constraint::Kind;
using SharedDfa = ClauseMaker::SharedDfa;

constexpr size_t kMaxFinite = 32;  // names of a region that become separate members
constexpr uint32_t kMaxBits = MemberSet::kBits;
constexpr size_t kMaxWitnesses = 6;
constexpr size_t kClausesPerState = 8;  // of a product, in clauses
constexpr size_t kMaxNames = 4096;      // including impossible ones

struct Region {
  SharedDfa names;
  Literals literals;
  std::set<std::string> matched;  // patterns
  bool patterns = false;          // the names are those that are patterns
};

class ObjectBuilder {
 public:
  ObjectBuilder(const JsonParts& parts, ClauseMaker& maker, const Clause& clause)
      : parts_(parts), to_(*parts.to), maker_(maker), clause_(clause) {}

  Result<ExprId> run() {
    GEN_TRY(settle_witnesses());
    if (split_.empty()) return build(clause_, {});
    return parts_.to->choice(split_);
  }

 private:
  [[nodiscard]] const JsonValue* some_schema() const {
    return clause_.done.empty() ? nullptr : clause_.done[0].schema;
  }

  [[nodiscard]] Status too_many_names(size_t most) const {
    return maker_.refuse(some_schema(), "properties",
                         "more than " + std::to_string(most) + " names in one object");
  }

  [[nodiscard]] Status refuse_patterns() const {
    return maker_.refuse(some_schema(), "propertyNames",
                         "the format regex together with other keywords about names");
  }

  // Schemas whose properties and patternProperties affect it.
  static std::vector<const JsonValue*> named_by(const Constraint& one) {
    if (one.kind == What::kMembers) return {one.schema};
    if (one.kind == What::kOthers) return one.named;
    return {};
  }

  // Names that keywords mention.
  static std::set<std::string> names_in(const Clause& clause) {
    std::set<std::string> names;
    for (const Constraint& one : clause.constraints) {
      if (one.kind == What::kRequired || one.kind == What::kAbsent || one.kind == What::kMember) {
        names.insert(one.name);
      }
      for (const JsonValue* schema : named_by(one)) {
        if (const JsonValue* properties = schema->find("properties")) {
          for (const auto& [name, member] : properties->members) names.insert(name);
        }
      }
    }
    return names;
  }

  // The names that a constraint on some member applies to.
  Result<SharedDfa> names_of_some(const Constraint& one) {
    if (one.kind == What::kSomeName) return maker_.names_of(one.rest);
    if (one.pattern != nullptr)
      return maker_.pattern(one.schema, "patternProperties", *one.pattern);
    Dfa names = *maker_.any_string();
    std::vector<std::string> listed;
    for (const JsonValue* schema : one.named) {
      if (const JsonValue* properties = schema->find("properties")) {
        for (const auto& [name, member] : properties->members) listed.push_back(name);
      }
    }
    const DfaFuel& fuel = maker_.options().automata;
    GEN_ASSIGN(names, combine(names, string_set(listed), Both::kNot, fuel));
    for (const JsonValue* schema : one.named) {
      const JsonValue* patterns = schema->find("patternProperties");
      if (patterns == nullptr) continue;
      for (const auto& [text, member] : patterns->members) {
        GEN_ASSIGN(const SharedDfa matching, maker_.pattern(schema, "patternProperties", text));
        GEN_ASSIGN(names, combine(names, *matching, Both::kNot, fuel));
      }
    }
    return SharedDfa(std::make_shared<const Dfa>(std::move(names)));
  }

  // Some member: one with its own name, or one of the others.
  Status settle_witnesses() {
    const auto some = [](const Constraint& one) {
      return one.kind == What::kSomeMember || one.kind == What::kSomeName;
    };
    std::vector<Constraint> witnesses;
    Clause rest = clause_;
    for (const Constraint& one : clause_.constraints) {
      if (some(one)) witnesses.push_back(one);
    }
    if (witnesses.empty()) return {};
    // settle() calls itself once for each.
    if (witnesses.size() > kMaxWitnesses) {
      return maker_.refuse(some_schema(), "properties",
                           "more than " + std::to_string(kMaxWitnesses) +
                               " conditions that some member must meet in one object");
    }
    std::erase_if(rest.constraints, some);
    std::vector<SharedDfa> names;
    for (const Constraint& one : witnesses) {
      GEN_ASSIGN(SharedDfa of_one, names_of_some(one));
      names.push_back(std::move(of_one));
    }
    names_ = names_in(rest);
    // A member of a small region is one with its own name.
    GEN_TRY(regions_of(rest, &names_).status());
    return settle(rest, witnesses, names, 0, {});
  }

  Status settle(const Clause& clause, const std::vector<Constraint>& witnesses,
                const std::vector<SharedDfa>& names, size_t at, std::vector<Region> found) {
    const size_t n_names = at == witnesses.size() ? names_in(clause).size() : 0;
    GEN_TRY(maker_.spend(some_schema(), 1 + n_names));
    if (at == witnesses.size()) {
      GEN_ASSIGN(const ExprId made, build(clause, found));
      split_.push_back(made);
      return {};
    }
    const Constraint& one = witnesses[at];
    const Literals rest = one.kind == What::kSomeName ? Literals() : one.rest;
    for (const std::string& name : names_) {
      if (!accepts(*names[at], name)) continue;
      Clause next = clause;
      Constraint required;
      required.kind = What::kRequired;
      required.name = name;
      next.constraints.push_back(required);
      required.kind = What::kMember;
      required.rest = rest;
      next.constraints.push_back(std::move(required));
      GEN_TRY(settle(next, witnesses, names, at + 1, found));
    }
    found.push_back({names[at], rest, {}});
    return settle(clause, witnesses, names, at + 1, std::move(found));
  }

  // `witnesses`: regions of which a member must occur.
  Result<ExprId> build(const Clause& clause, const std::vector<Region>& witnesses) {
    const Lengths size = ClauseMaker::size_of(clause);
    MemberList list;
    list.min = std::max(size.min, 1U);
    list.max = size.max;
    std::set<std::string> required;
    for (const Constraint& one : clause.constraints) {
      if (one.kind == What::kRequired) required.insert(one.name);
    }
    std::set<std::string> names = names_in(clause);
    if (names.size() > kMaxNames) return too_many_names(kMaxNames);
    GEN_ASSIGN(std::vector<Region> regions, regions_of(clause, &names));
    uint32_t bits = 0;
    std::vector<std::string> listed;
    // If there are too few bits, duplicates of optional names are refused beside the grammar.
    const bool in_order = comes_in_order(names.size() + witnesses.size());
    const bool beside = parts_.names_watched && !in_order;
    const ValueForm* const form = parts_.form;
    const size_t other_bits = required.size() + witnesses.size();
    size_t optional = !beside ? SIZE_MAX : other_bits < kMaxBits ? kMaxBits - other_bits : 0;
    const auto body = [&](ExprId key, ExprId value) {
      return parts_.all({key, parts_.colon, value, parts_.space});
    };
    const auto member = [&](const std::string& name, ExprId value) -> Result<ExprId> {
      if (form != nullptr) return form->member(name, value);
      GEN_ASSIGN(const ExprId key, parts_.key(name));
      return body(key, value);
    };
    for (const std::string& name : names) {
      GEN_ASSIGN(const Literals literals, maker_.member_literals(clause, name));
      GEN_ASSIGN(const ExprId value, parts_.member(&name, literals));
      GEN_ASSIGN(const ExprId whole, member(name, value));
      if (whole == Expressions::kNever) {
        if (required.contains(name)) return Expressions::kNever;
        continue;
      }
      const bool must = required.contains(name);
      if (!must && optional == 0) {
        list.members.push_back({whole, {}, false});
        continue;
      }
      if (bits == kMaxBits) return too_many_names(kMaxBits);
      if (!must) --optional;
      if (must) list.required |= MemberSet::bit(bits);
      list.members.push_back({whole, MemberSet::bit(bits++), true});
      listed.push_back(name);
    }
    const auto add_region = [&](const Region& region, const MemberSet& put) -> Status {
      GEN_ASSIGN(const ExprId value, parts_.member(nullptr, region.literals));
      if (value == Expressions::kNever || region.names->empty()) return {};
      if (form != nullptr) {
        GEN_ASSIGN(const ExprId whole, form->members(*region.names, value));
        if (whole == Expressions::kNever) {
          parts_.relax(some_schema(), "members that are not listed cannot be written");
          return {};
        }
        parts_.relax(some_schema(), "members that are not listed may come twice");
        list.members.push_back({whole, put, false});
        return {};
      }
      GEN_ASSIGN(const ExprId key,
                 region.patterns ? parts_.patterns() : parts_.strings(*region.names));
      list.members.push_back({body(key, value), put, false});
      return {};
    };
    if (bits + witnesses.size() + (in_order ? 1 : 0) > kMaxBits) {
      return maker_.refuse(some_schema(), "properties", "too many names in one object");
    }
    // A member may satisfy several constraints at once.
    const uint32_t first_bit = bits;
    bits += static_cast<uint32_t>(witnesses.size());
    for (uint64_t shown = 0; shown < uint64_t{1} << witnesses.size(); ++shown) {
      MemberSet put;
      for (uint32_t w = 0; w < witnesses.size(); ++w) {
        if ((shown >> w & 1) != 0) put |= MemberSet::bit(first_bit + w);
      }
      list.required |= put;
      for (Region region : regions) {
        for (size_t w = 0; w < witnesses.size(); ++w) {
          if ((shown >> w & 1) == 0) continue;
          if (region.patterns) return refuse_patterns();
          GEN_ASSIGN(Dfa both, combine(*region.names, *witnesses[w].names, Both::kAnd,
                                       maker_.options().automata));
          region.names = std::make_shared<const Dfa>(std::move(both));
          region.literals.insert(region.literals.end(), witnesses[w].literals.begin(),
                                 witnesses[w].literals.end());
        }
        GEN_TRY(add_region(region, put));
      }
    }
    if (in_order) put_in_order(clause, listed, bits, &list);
    const bool may_be_none = size.min == 0 && list.required.none();
    list.separator = form != nullptr ? form->object().between : parts_.comma;
    const ExprId members = list.max > 0 ? to_.members(std::move(list)) : Expressions::kNever;
    if (form != nullptr) {
      const ExprId some = parts_.all({form->object().open, members, form->object().close});
      return parts_.any({some, may_be_none ? form->object().none : Expressions::kNever});
    }
    const ExprId inside =
        parts_.any({members, may_be_none ? Expressions::kEmpty : Expressions::kNever});
    return parts_.all({parts_.byte('{'), parts_.space, inside, parts_.byte('}')});
  }

  // For at most that many members whose presence matters.
  [[nodiscard]] bool comes_in_order(size_t n_bits) const {
    const JsonStyle::Order order = maker_.options().style.order;
    if (order != JsonStyle::Order::kPreferred || n_bits < kMaxBits) {
      return order != JsonStyle::Order::kAny;
    }
    maker_.tell_any_order();
    return false;
  }

  // The first members of the list are those of `listed`; they come as the schema lists them,
  // followed by unlisted names, and then the others, which set the bit `other`.
  static void put_in_order(const Clause& clause, const std::vector<std::string>& listed,
                           uint32_t other, MemberList* list) {
    std::map<std::string_view, size_t> ranks;
    for (const Constraint& one : clause.constraints) {
      const JsonValue* properties =
          one.kind == What::kMembers ? one.schema->find("properties") : nullptr;
      if (properties == nullptr) continue;
      for (const auto& [name, schema] : properties->members) ranks.try_emplace(name, ranks.size());
    }
    std::vector<std::pair<size_t, MemberList::Member>> sorted;
    for (size_t i = 0; i < listed.size(); ++i) {
      const auto rank = ranks.find(listed[i]);
      sorted.emplace_back(rank != ranks.end() ? rank->second : ranks.size() + i, list->members[i]);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    list->in_order = true;
    MemberSet before;
    for (size_t i = 0; i < sorted.size(); ++i) {
      list->members[i] = sorted[i].second;
      list->members[i].before = before;
      before |= list->members[i].bits & list->required;
    }
    MemberSet after = MemberSet::bit(other);
    for (size_t i = list->members.size(); i-- > 0;) {
      MemberList::Member& member = list->members[i];
      if (i >= sorted.size()) {
        member.before = before;
        member.bits |= MemberSet::bit(other);
      } else {
        member.after = after;
        after |= member.bits;
      }
    }
  }

  // Splits regions by whether their names match.
  Status split_by(const JsonValue* schema, const std::string& text, std::vector<Region>* regions) {
    GEN_ASSIGN(const SharedDfa matching, maker_.pattern(schema, "patternProperties", text));
    const DfaFuel& fuel = maker_.options().automata;
    std::vector<Region> made;
    for (Region& region : *regions) {
      GEN_TRY(maker_.spend(schema, 1 + kClausesPerState * region.names->states.size()));
      GEN_ASSIGN(Dfa in, combine(*region.names, *matching, Both::kAnd, fuel));
      if (in.empty()) {
        made.push_back(std::move(region));
        continue;
      }
      GEN_ASSIGN(Dfa out, combine(*region.names, *matching, Both::kNot, fuel));
      if (!out.empty()) {
        made.push_back({std::make_shared<const Dfa>(std::move(out)), {}, region.matched});
      }
      region.matched.insert(text);
      made.push_back({std::make_shared<const Dfa>(std::move(in)), {}, std::move(region.matched)});
    }
    *regions = std::move(made);
    return {};
  }

  // Adds the constraint's literals for members with the names of a region.
  void add_literals(const Constraint& one, Region* region) {
    bool named = false;
    for (const JsonValue* schema : named_by(one)) {
      const JsonValue* patterns = schema->find("patternProperties");
      if (patterns == nullptr) continue;
      for (const auto& [text, member] : patterns->members) {
        if (!region->matched.contains(text)) continue;
        named = true;
        if (one.kind == What::kMembers) {
          region->literals.push_back(maker_.literal(member, one.scope));
        }
      }
    }
    if (named || one.kind != What::kOthers) return;
    region->literals.insert(region->literals.end(), one.rest.begin(), one.rest.end());
  }

  // Whether no other names are allowed.
  bool nothing_else(const Clause& clause) {
    Region any;
    for (const Constraint& one : clause.constraints) {
      for (const JsonValue* schema : named_by(one)) {
        if (schema->find("patternProperties") != nullptr) return false;
      }
      add_literals(one, &any);
    }
    bool never = false;
    (void)maker_.normal(std::move(any.literals), &never);
    return never;
  }

  // The regions of names other than `names`; a region of few names adds them to `names`.
  Result<std::vector<Region>> regions_of(const Clause& clause, std::set<std::string>* names) {
    if (nothing_else(clause)) return std::vector<Region>();
    const DfaFuel& fuel = maker_.options().automata;
    const std::vector<std::string> listed(names->begin(), names->end());
    Region all;
    GEN_ASSIGN(Dfa others, combine(*maker_.any_string(), string_set(listed), Both::kNot, fuel));
    std::vector<Region> regions = {{std::make_shared<const Dfa>(std::move(others)), {}, {}}};
    bool are_patterns = false;
    for (const Constraint& one : clause.constraints) {
      if (one.kind != What::kNames) continue;
      GEN_ASSIGN(const SharedDfa allowed, maker_.names_of(one.rest, &are_patterns));
      GEN_ASSIGN(Dfa both, combine(*regions[0].names, *allowed, Both::kAnd, fuel));
      regions[0].names = std::make_shared<const Dfa>(std::move(both));
    }
    std::set<std::string> patterns;
    for (const Constraint& one : clause.constraints) {
      for (const JsonValue* schema : named_by(one)) {
        const JsonValue* list = schema->find("patternProperties");
        if (list == nullptr) continue;
        for (const auto& [text, member] : list->members) {
          if (!patterns.insert(text).second) continue;
          GEN_TRY(split_by(schema, text, &regions));
        }
      }
    }
    for (Region& region : regions) {
      for (const Constraint& one : clause.constraints) add_literals(one, &region);
    }
    std::vector<Region> kept;
    for (Region& region : regions) {
      bool never = false;
      region.literals = maker_.normal(region.literals, &never);
      if (never || region.names->empty()) continue;
      std::vector<std::string> few;
      if (finite_strings(*region.names, kMaxFinite, &few)) {
        names->insert(few.begin(), few.end());
        continue;
      }
      if (are_patterns) {
        GEN_ASSIGN(const Dfa rest, combine(*maker_.any_string(), *region.names, Both::kNot, fuel));
        if (!rest.empty()) return refuse_patterns();
        region.patterns = true;
      }
      const auto same = std::find_if(kept.begin(), kept.end(), [&](const Region& other) {
        return other.literals == region.literals;
      });
      if (same == kept.end()) {
        kept.push_back(std::move(region));
        continue;
      }
      GEN_ASSIGN(Dfa both, combine(*same->names, *region.names, Both::kOr, fuel));
      same->names = std::make_shared<const Dfa>(std::move(both));
    }
    return kept;
  }

  const JsonParts& parts_;
  Expressions& to_;
  ClauseMaker& maker_;
  const Clause& clause_;
  std::set<std::string> names_;  // that members are settled to
  std::vector<ExprId> split_;
};

}  // namespace

Result<ExprId> object_expression(const JsonParts& parts, ClauseMaker& maker, const Clause& clause) {
  return ObjectBuilder(parts, maker, clause).run();
}

}  // namespace gen::grammar
