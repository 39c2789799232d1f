// SPDX-License-Identifier: Apache-2.0
// Sets of characters that patterns name, see regex_sets.h.
#include "grammar/regex/regex_sets.h"

#include <optional>
#include <utility>

#include "grammar/regex/case_folds.h"
#include "grammar/regex/unicode_sets.h"

namespace gen::grammar {
namespace {

std::optional<CharSet> set_of_rust(const std::string& name) {
  if (name != "\\w") {
    auto found = unicode_set(name);
    return found ? found : unicode_set("Script=" + name);
  }
  CharSet made;
  for (const char* part : {"Alphabetic", "M", "Nd", "Pc", "Join_Control"}) {
    made.add(unicode_set(part).value_or(CharSet()));
  }
  return made;
}

}  // namespace

RegexSets::Key RegexSets::key_of(const CharSet& set) {
  Key key;
  for (const CharRange range : set.ranges()) key.insert(key.end(), {range.low, range.high});
  return key;
}

const CharSet* RegexSets::named(const Name& name) {
  const auto known = named_.find(name);
  if (known != named_.end()) return &known->second;
  auto found = name.of_rust ? set_of_rust(name.text) : unicode_set(name.text);
  if (!found) return nullptr;
  if (name.any_case) found = in_any_case(*found);
  return &named_.emplace(name, name.negated ? found->inverted() : *found).first->second;
}

const CharSet& RegexSets::in_any_case(const CharSet& set) {
  Key key = key_of(set);
  const auto known = in_any_case_.find(key);
  if (known != in_any_case_.end()) return known->second;
  return in_any_case_.emplace(std::move(key), without_case(set)).first->second;
}

ExprId RegexSets::written(const CharSet& set) {
  const auto [known, added] = written_.try_emplace(key_of(set), Expressions::kNever);
  if (added) known->second = characters(to_, set);
  return known->second;
}

}  // namespace gen::grammar
