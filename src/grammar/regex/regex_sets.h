// SPDX-License-Identifier: Apache-2.0
// Sets of characters that patterns name. They are kept, as those of properties are large, and a
// file with many patterns repeats them.
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

  /// What \p{name} means, or \P{name}; null if it is not known. As Rust has it, the name may be
  /// that of a script alone, and "\\w" is Unicode's \w.
  struct Name {
    std::string text;
    bool negated = false;
    bool of_rust = false;
    bool any_case = false;  // before it is negated
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
