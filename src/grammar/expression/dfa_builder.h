// SPDX-License-Identifier: Apache-2.0
// From expressions to deterministic automata, including all assertions: start, end, word
// boundaries, lookahead and lookbehind, in any nesting. All of these are regular, so the automaton
// is exact.
#pragma once

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"

namespace gen::grammar {

/// The language of `expr`. kGrammar if that exceeds the fuel, as for recursive rules, or if the
/// expression names tokens.
Result<Dfa> build_dfa(const Expressions& all, ExprId expr, const DfaFuel& fuel = {});

}  // namespace gen::grammar
