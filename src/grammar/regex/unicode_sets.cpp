// SPDX-License-Identifier: Apache-2.0
// Characters by Unicode property, see unicode_sets.h.
#include "grammar/regex/unicode_sets.h"

#include <algorithm>

#include "grammar/regex/unicode_sets_data.h"

namespace gen::grammar {
namespace {

struct CategoryGroup {
  std::string_view names;
  std::string_view members;  // first letters of the categories
};

constexpr CategoryGroup kGroups[] = {
    {"C|Other", "C"},
    {"L|Letter", "L"},
    {"M|Mark|Combining_Mark", "M"},
    {"N|Number", "N"},
    {"P|Punctuation|punct", "P"},
    {"S|Symbol", "S"},
    {"Z|Separator", "Z"},
};

bool names(std::string_view all, std::string_view one) {
  while (!all.empty()) {
    const size_t end = std::min(all.find('|'), all.size());
    if (all.substr(0, end) == one) return true;
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return false;
}

void add(size_t index, CharSet* to) {
  const auto sets = unicode_sets();
  const auto data = unicode_data();
  const size_t end = index + 1 < sets.size() ? sets[index + 1].begin : data.size();
  uint32_t place = 0;
  uint32_t step = 0;
  uint32_t shift = 0;
  uint32_t low = 0;
  bool inside = false;
  for (size_t i = sets[index].begin; i < end; ++i) {
    step |= static_cast<uint32_t>(data[i] & 127) << shift;
    shift += 7;
    if ((data[i] & 128) != 0) continue;
    place += step;
    step = shift = 0;
    if (inside) to->add(low, place - 1);
    low = place;
    inside = !inside;
  }
}

bool add_named(char kind, std::string_view name, CharSet* to) {
  const auto sets = unicode_sets();
  for (size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].kind != kind || !names(sets[i].names, name)) continue;
    add(i, to);
    return true;
  }
  return false;
}

bool add_category(std::string_view name, CharSet* to) {
  if (add_named('c', name, to)) return true;
  if (name == "LC" || name == "Cased_Letter") {
    return add_named('c', "Ll", to) && add_named('c', "Lu", to) && add_named('c', "Lt", to);
  }
  for (const CategoryGroup& group : kGroups) {
    if (!names(group.names, name)) continue;
    const auto sets = unicode_sets();
    for (size_t i = 0; i < sets.size(); ++i) {
      if (sets[i].kind == 'c' && sets[i].names[0] == group.members[0]) add(i, to);
    }
    return true;
  }
  return false;
}

}  // namespace

std::optional<CharSet> unicode_set(std::string_view text) {
  CharSet set;
  const size_t equals = text.find('=');
  bool known = false;
  if (equals != std::string_view::npos) {
    const std::string_view property = text.substr(0, equals);
    const std::string_view value = text.substr(equals + 1);
    if (property == "gc" || property == "General_Category") {
      known = add_category(value, &set);
    } else if (property == "sc" || property == "Script") {
      known = add_named('s', value, &set);
    } else if (property == "scx" || property == "Script_Extensions") {
      known = add_named('x', value, &set) || add_named('s', value, &set);
    }
  } else if (text == "Any") {
    set.add(0, kLastCharacter);
    known = true;
  } else if (text == "ASCII") {
    set.add(0, 0x7F);
    known = true;
  } else if (text == "Assigned") {
    known = add_named('c', "Cn", &set);
    set = set.inverted();
  } else {
    known = add_category(text, &set) || add_named('b', text, &set);
  }
  if (!known) return std::nullopt;
  return set;
}

}  // namespace gen::grammar
