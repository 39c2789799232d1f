// SPDX-License-Identifier: Apache-2.0
// The table that unicode_sets.mjs writes; unicode_sets.h reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gen::grammar {

struct UnicodeSet {
  char kind;          // c general category, b binary property, s script, x script extensions
  const char* names;  // separated by |, the longest first except for categories
  size_t begin;       // of its data, which ends where the next set's begins
};

/// Distances between the characters where membership changes, starting as a non-member before
/// U+0000; seven bits per byte, lowest first, where the eighth bit says that more follow.
std::span<const uint8_t> unicode_data() noexcept;
std::span<const UnicodeSet> unicode_sets() noexcept;

}  // namespace gen::grammar
