// SPDX-License-Identifier: Apache-2.0
// Clauses: what a schema, or several together, ask of a value of one JSON type. A literal is a
// schema that must hold, or must not; literals are taken apart into constraints, and where a
// keyword leaves a choice (anyOf, or the negation of what asks for several things) into several
// clauses, of which a valid value fits at least one.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "grammar/expression/dfa.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/number_dfa.h"

namespace gen::grammar {

struct Literal {
  const JsonValue* schema = nullptr;
  bool negated = false;
  uint32_t scope = 0;  // what dynamic references lead to there (SchemaDocument::enter)
  bool operator==(const Literal&) const = default;
  std::strong_ordering operator<=>(const Literal& other) const {
    const auto place = [](const JsonValue* value) { return value == nullptr ? 0 : value->order; };
    return std::tuple(place(schema), negated, scope) <=>
           std::tuple(place(other.schema), other.negated, other.scope);
  }
  [[nodiscard]] Literal operator!() const { return {schema, !negated, scope}; }
};
/// All of them hold; in order, each once.
using Literals = std::vector<Literal>;

struct Constraint {
  enum class Kind : uint8_t {
    kDfa,         // string: the value is in `dfa`, or not
    kPattern,     // string: the value is a pattern (pattern_check.h), or not
    kNumber,      // number: `number` is true of it, or not
    kSize,        // string, array, object: min to max characters, items, members
    kItems,       // array: `literals` of the first items, `rest` of all others
    kItem,        // array: `rest` of item number `min`, which is there
    kContains,    // array: min to max items of which `rest` holds
    kSomeBehind,  // array: `rest` of an item from number `min` on
    kUnique,      // array: all items differ, or two do not
    kMembers,     // object: properties and patternProperties of `schema`
    kOthers,      // object: `rest` of members of which none of `named` speaks
    kRequired,    // object: `name` is there
    kAbsent,      // object: it is not
    kMember,      // object: `rest` of member `name`, if it is there
    kSomeMember,  // object: `rest` of a member that matches `pattern`, or of which none of `named`
                  // speaks
    kNames,       // object: `rest` of all names
    kSomeName,    // object: `rest` of some name
  };
  Kind kind = Kind::kDfa;
  bool negated = false;
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  std::shared_ptr<const Dfa> dfa;
  std::shared_ptr<const NumberTerm> number;
  Literals literals;
  Literals rest;
  const JsonValue* schema = nullptr;  // where it comes from
  uint32_t scope = 0;                 // of `schema`
  /// Schemas whose properties and patternProperties speak of members.
  std::vector<const JsonValue*> named;
  std::string name;
  const std::string* pattern = nullptr;
};

struct Option {
  Literals literals;
  std::vector<Constraint> constraints;
};
/// At least one of them holds. None: nothing does.
using Options = std::vector<Option>;

struct Clause {
  Literals open;  // to be taken apart
  Literals done;
  std::vector<Constraint> constraints;
  std::vector<Options> choices;
};

}  // namespace gen::grammar
