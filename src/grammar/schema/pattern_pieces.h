// SPDX-License-Identifier: Apache-2.0
// Parts of patterns (ECMA-262, 2020, flag u) that are regular, as automata over their characters.
#pragma once

#include "grammar/expression/dfa.h"

namespace gen::grammar {

/// What may be repeated, without groups, digits, \0 and back references.
Dfa pattern_atoms();
/// How often; of {n,m} with n from 100 on those of which m has more digits.
Dfa pattern_quantifiers();
/// What begins a group with a name, whose characters are ASCII: "(?<name>".
Dfa pattern_openings();

}  // namespace gen::grammar
