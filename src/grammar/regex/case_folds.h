// SPDX-License-Identifier: Apache-2.0
// Case-insensitive characters, by Unicode's simple case folding.
#pragma once

#include "grammar/expression/characters.h"

namespace gen::grammar {

/// The set and every character that differs from a member only in case: for k, also K and the
/// Kelvin sign. Cost: linear in the set for ASCII, else one pass over the table.
CharSet without_case(const CharSet& set);

}  // namespace gen::grammar
