// SPDX-License-Identifier: Apache-2.0
// The table that unicode_sets.mjs writes; unicode_sets.h reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gen::grammar {

struct UnicodeSet {
  char kind;          // c general category, b binary property, s script, x script extensions
  const char* names;  // with | between them, the longest first but for categories
  size_t begin;       // of its data, which ends where the next set's begins
};

/// Distances between the characters where membership changes, from not being a member before U+0000
/// on; seven bits a byte, least first, the eighth says that more follow.
std::span<const uint8_t> unicode_data() noexcept;
std::span<const UnicodeSet> unicode_sets() noexcept;

}  // namespace gen::grammar
