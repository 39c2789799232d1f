// SPDX-License-Identifier: Apache-2.0
// Named sets of characters in patterns. They are cached, because those of properties are large, and
// a file with many patterns repeats them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "grammar/expression/characters.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

class RegexSets {
 public:
  explicit RegexSets(Expressions& to) : to_(to) {}

  /// The meaning of \p{name} or \P{name}; null if it is unknown. In Rust's syntax the name may be
  /// that of a script alone, and "\\w" is Unicode's \w.
  struct Name {
    std::string text;
    bool negated = false;
    bool of_rust = false;
    bool any_case = false;  // applied before negation
    auto operator<=>(const Name&) const = default;
  };
  const CharSet* named(const Name& name);
  const CharSet& in_any_case(const CharSet& set);
  /// One character of the set.
  ExprId written(const CharSet& set);

  Expressions& expressions() noexcept { return to_; }

 private:
  using Key = std::vector<uint32_t>;
  static Key key_of(const CharSet& set);

  Expressions& to_;
  std::map<Name, CharSet> named_;
  std::map<Key, CharSet> in_any_case_;
  std::map<Key, ExprId> written_;
};

}  // namespace gen::grammar
