// SPDX-License-Identifier: Apache-2.0
// Parts of patterns (ECMA-262, 2020, flag u) that are regular, as automata over their characters.
#pragma once

#include "grammar/expression/dfa.h"

namespace gen::grammar {

/// Repeatable atoms, without groups, digits, \0 and back references.
Dfa pattern_atoms();
/// Quantifiers; of {n,m} with n from 100 on, those in which m has more digits.
Dfa pattern_quantifiers();
/// The opening of a group with an ASCII name: "(?<name>".
Dfa pattern_openings();

}  // namespace gen::grammar
