// SPDX-License-Identifier: Apache-2.0
// Clauses: the constraints of one or several schemas on a value of one JSON type. A literal is a
// schema that must hold, or must not. Literals are decomposed into constraints and, where a keyword
// leaves a choice (anyOf, or the negation of a conjunction), into several clauses; a valid value
// satisfies at least one of them.
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
  uint32_t scope = 0;  // determines the targets of dynamic references (SchemaDocument::enter)
  bool operator==(const Literal&) const = default;
  std::strong_ordering operator<=>(const Literal& other) const {
    const auto place = [](const JsonValue* value) { return value == nullptr ? 0 : value->order; };
    return std::tuple(place(schema), negated, scope) <=>
           std::tuple(place(other.schema), other.negated, other.scope);
  }
  [[nodiscard]] Literal operator!() const { return {schema, !negated, scope}; }
};
/// A conjunction; sorted, without duplicates.
using Literals = std::vector<Literal>;

struct Constraint {
  enum class Kind : uint8_t {
    kDfa,         // string: the value is in `dfa`, or not
    kPattern,     // string: the value is a pattern (pattern_check.h), or not
    kNumber,      // number: `number` holds for it, or not
    kSize,        // string, array, object: min to max characters, items, members
    kItems,       // array: `literals` for the first items, `rest` for all others
    kItem,        // array: `rest` for item number `min`, which exists
    kContains,    // array: min to max items match `rest`
    kSomeBehind,  // array: an item from number `min` on matches `rest`
    kUnique,      // array: all items differ, or two are equal
    kMembers,     // object: properties and patternProperties of `schema`
    kOthers,      // object: `rest` for members that no schema in `named` mentions
    kRequired,    // object: member `name` exists
    kAbsent,      // object: member `name` does not exist
    kMember,      // object: `rest` for member `name`, if it exists
    kSomeMember,  // object: a member that matches `pattern`, or that no schema in `named` mentions,
                  // matches `rest`
    kNames,       // object: `rest` for all names
    kSomeName,    // object: `rest` for some name
  };
  Kind kind = Kind::kDfa;
  bool negated = false;
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  std::shared_ptr<const Dfa> dfa;
  std::shared_ptr<const NumberTerm> number;
  Literals literals;
  Literals rest;
  const JsonValue* schema = nullptr;  // its origin
  uint32_t scope = 0;                 // of `schema`
  /// Schemas whose properties and patternProperties mention members.
  std::vector<const JsonValue*> named;
  std::string name;
  const std::string* pattern = nullptr;
};

struct Option {
  Literals literals;
  std::vector<Constraint> constraints;
};
/// A disjunction; an empty one is false.
using Options = std::vector<Option>;

struct Clause {
  Literals open;  // not decomposed yet
  Literals done;
  std::vector<Constraint> constraints;
  std::vector<Options> choices;
};

}  // namespace gen::grammar
