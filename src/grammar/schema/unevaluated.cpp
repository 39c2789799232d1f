// SPDX-License-Identifier: Apache-2.0
// unevaluatedProperties and unevaluatedItems: the parts that other keywords of the same value have
// evaluated depend on which adjacent schemas hold. Each combination is examined separately.
#include <algorithm>
#include <string>
#include <utility>

#include "grammar/schema/clause_maker.h"

namespace gen::grammar {

using Asked = Constraint::Kind;

// Maximum nesting of schemas that apply to one value.
constexpr size_t kMaxWithin = 32;

// What is evaluated if `option` holds.
struct ClauseMaker::Seen {
  Option option;
  std::vector<const JsonValue*> named;  // schemas that mention members by name
  uint32_t first = 0;                   // items from the first on
  Literals contains;                    // items that match one of these
  bool all = false;

  [[nodiscard]] bool nothing() const {
    return named.empty() && first == 0 && contains.empty() && !all;
  }
};

struct ClauseMaker::SeenWalk {
  bool items;
  // Each combination must then decide for every schema whether it holds. Otherwise further schemas
  // may hold, which only evaluate more.
  // told of: they only speak of more.
  bool exact;
  const JsonValue* origin;
  std::vector<Literal> path;  // schemas that apply to the same value
};

Result<Options> ClauseMaker::unevaluated(const Keyword& k, bool negated) {
  const bool items = k.key == "unevaluatedItems";
  const bool mine = k.type == (items ? JsonType::kArray : JsonType::kObject);
  if (!mine || k.value.is(JsonType::kTrue)) return negated ? Options() : Options{Option()};
  const Literal rest = literal(k.value, k.scope);
  GEN_ASSIGN(const std::vector<Seen> ways,
             seen_in({items, negated, k.schema, {}}, k.schema, k.scope));
  Options made;
  for (const Seen& seen : ways) {
    if (negated && seen.all) continue;
    Option option = seen.option;
    Constraint constraint;
    constraint.schema = k.schema;
    if (!items) {
      constraint.kind = negated ? Asked::kSomeMember : Asked::kOthers;
      constraint.named = seen.named;
      constraint.rest = {negated ? !rest : rest};
    } else if (negated) {
      constraint.kind = Asked::kSomeBehind;
      constraint.min = seen.first;
      constraint.rest = {!rest};
      for (const Literal one : seen.contains) constraint.rest.push_back(!one);
    } else {
      constraint.kind = Asked::kItems;
      constraint.literals.assign(seen.first, Literal{&always_});
      Literals any = seen.contains;
      any.push_back(rest);
      constraint.rest = {any.size() == 1 ? rest : any_of(std::move(any))};
    }
    if (!seen.all) option.constraints.push_back(std::move(constraint));
    made.push_back(std::move(option));
  }
  return made;
}

// Adds what keywords of the schema itself evaluate.
Status ClauseMaker::see_itself(const SeenWalk& walk, const JsonValue* schema, uint32_t scope,
                               Seen* seen) {
  const Draft draft = document_.draft_of(schema);
  const auto has = [&](const char* key) { return schema->find(key) != nullptr; };
  const bool origin = schema == walk.origin;
  if (!walk.items) {
    if (has("properties") || has("patternProperties")) seen->named.push_back(schema);
    seen->all |= has("additionalProperties") || (!origin && has("unevaluatedProperties"));
    return {};
  }
  const Keyword k = {JsonType::kArray, schema, std::string(), *schema, scope, draft};
  Constraint items;
  GEN_TRY(items_of(k, &items));
  seen->first = std::max(seen->first, static_cast<uint32_t>(items.literals.size()));
  seen->all |= !items.rest.empty() || (!origin && has("unevaluatedItems"));
  const JsonValue* contains = schema->find("contains");
  if (contains != nullptr && draft == Draft::k2020) {
    seen->contains.push_back(literal(*contains, scope));
  }
  return {};
}

Result<std::vector<ClauseMaker::Seen>> ClauseMaker::seen_both(const std::vector<Seen>& a,
                                                              const std::vector<Seen>& b) {
  std::vector<Seen> made;
  const auto add = [](auto& to, const auto& more) {
    for (const auto& one : more) to.push_back(one);
  };
  for (const Seen& x : a) {
    for (const Seen& y : b) {
      GEN_TRY(spend(nullptr));
      Seen both = x;
      add(both.option.literals, y.option.literals);
      add(both.option.constraints, y.option.constraints);
      add(both.named, y.named);
      add(both.contains, y.contains);
      both.first = std::max(x.first, y.first);
      both.all = x.all || y.all;
      made.push_back(std::move(both));
    }
  }
  return made;
}

// For a schema that holds.
Result<std::vector<ClauseMaker::Seen>> ClauseMaker::seen_in(const SeenWalk& walk,
                                                            const JsonValue* schema,
                                                            uint32_t scope) {
  std::vector<Seen> ways(1);
  const Literal here = {schema, false, scope};
  if (!schema->is(JsonType::kObject)) return ways;
  if (std::find(walk.path.begin(), walk.path.end(), here) != walk.path.end()) return ways;
  if (walk.path.size() >= kMaxWithin) {
    return refuse(walk.origin, walk.items ? "unevaluatedItems" : "unevaluatedProperties",
                  "beside more than " + std::to_string(kMaxWithin) + " schemas in each other");
  }
  SeenWalk below = walk;
  below.path.push_back(here);
  GEN_TRY(see_itself(walk, schema, scope, ways.data()));
  const auto join = [&](const std::vector<Seen>& more) -> Status {
    GEN_ASSIGN(ways, seen_both(ways, more));
    return {};
  };
  const auto of = [&](Literal one) { return seen_in(below, one.schema, one.scope); };
  // The combinations in which `one` holds, with what it evaluates; none if it evaluates nothing.
  const auto if_holds = [&](Literal one) -> Result<std::vector<Seen>> {
    GEN_ASSIGN(std::vector<Seen> made, of(one));
    if (std::all_of(made.begin(), made.end(), [](const Seen& way) { return way.nothing(); })) {
      return std::vector<Seen>();
    }
    for (Seen& way : made) way.option.literals.push_back(one);
    return made;
  };
  const JsonType type = walk.items ? JsonType::kArray : JsonType::kObject;
  const Draft draft = document_.draft_of(schema);
  for (const auto& [key, value] : schema->members) {
    const Keyword k = {type, schema, key, value, scope, draft};
    if (key == "allOf") {
      GEN_ASSIGN(const Literals all, schema_list(k));
      for (const Literal one : all) {
        GEN_ASSIGN(const std::vector<Seen> more, of(one));
        GEN_TRY(join(more));
      }
    } else if (key == "anyOf") {
      GEN_ASSIGN(const Literals all, schema_list(k));
      for (const Literal one : all) {
        GEN_ASSIGN(std::vector<Seen> more, if_holds(one));
        if (more.empty()) continue;
        Seen without;
        if (walk.exact) without.option.literals.push_back(!one);
        more.push_back(std::move(without));
        GEN_TRY(join(more));
      }
    } else if (key == "oneOf") {
      GEN_ASSIGN(const Literals all, schema_list(k));
      std::vector<Seen> any;
      bool others = false;
      for (const Literal one : all) {
        GEN_ASSIGN(const std::vector<Seen> more, if_holds(one));
        any.insert(any.end(), more.begin(), more.end());
        others |= more.empty();
        if (!more.empty() || !walk.exact) continue;
        Seen alone;
        alone.option.literals.push_back(one);
        any.push_back(std::move(alone));
      }
      if (others && !walk.exact) any.emplace_back();
      GEN_TRY(join(any));
    } else if (key == "if") {
      const Literal condition = literal(value, scope);
      std::vector<Seen> any;
      for (const bool holds : {true, false}) {
        std::vector<Seen> more(1);
        more[0].option.literals.push_back(holds ? condition : !condition);
        if (holds) {
          GEN_ASSIGN(const std::vector<Seen> own, of(condition));
          GEN_ASSIGN(more, seen_both(more, own));
        }
        if (const JsonValue* then = schema->find(holds ? "then" : "else")) {
          GEN_ASSIGN(const std::vector<Seen> own, of(literal(*then, scope)));
          GEN_ASSIGN(more, seen_both(more, own));
        }
        any.insert(any.end(), more.begin(), more.end());
      }
      GEN_TRY(join(any));
    } else if ((key == "dependentSchemas" || key == "dependencies") && type == JsonType::kObject) {
      for (const auto& [name, dependent] : value.members) {
        if (!dependent.is(JsonType::kObject)) continue;
        GEN_ASSIGN(std::vector<Seen> more, of(literal(dependent, scope)));
        Seen absent;
        Constraint there;
        there.name = name;
        there.kind = Asked::kAbsent;
        absent.option.constraints.push_back(there);
        there.kind = Asked::kRequired;
        for (Seen& way : more) way.option.constraints.push_back(there);
        more.push_back(std::move(absent));
        GEN_TRY(join(more));
      }
    } else if (key == "$ref" || (key == "$dynamicRef" && draft == Draft::k2020) ||
               (key == "$recursiveRef" && draft == Draft::k2019)) {
      GEN_ASSIGN(const JsonValue* target, reference(k));
      GEN_ASSIGN(const std::vector<Seen> more, of(literal(*target, scope)));
      GEN_TRY(join(more));
    }
  }
  return ways;
}

}  // namespace gen::grammar
