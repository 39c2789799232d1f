// SPDX-License-Identifier: Apache-2.0
// From expressions to automata with one way for each byte, with all that an expression may ask
// about its surroundings: start, end, borders of words, and what lies ahead or behind, in any
// nesting. All of that is regular, so the automaton is exact.
#pragma once

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// The texts that `expr` matches from end to end. kGrammar if that takes more than the fuel, as it
/// does for rules that contain themselves, or if the expression names tokens.
Result<Dfa> build_dfa(const Expressions& all, ExprId expr, const DfaFuel& fuel = {});

}  // namespace gen::grammar
