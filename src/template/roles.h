// SPDX-License-Identifier: Apache-2.0
// The roles that templates know by name.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace gen::templates {

/// Templates write these between the marks of a turn (<|user|>), so they count as their own words;
/// any other role is text like a message's.
inline bool is_known_role(std::string_view role) noexcept {
  constexpr std::string_view kRoles[] = {"assistant", "developer", "function", "ipython",
                                         "model",     "system",    "tool",     "user"};
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

}  // namespace gen::templates
