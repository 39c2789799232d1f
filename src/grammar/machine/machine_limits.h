// SPDX-License-Identifier: Apache-2.0
// Computes how limits affect each state of a table of machines: State::limit, Machines::fewest and
// mixed, Loop::farthest.
#pragma once

#include <vector>

#include "grammar/machine/automaton.h"
#include "grammar/base/building.h"
#include "grammar/machine/machines.h"

namespace gen::grammar {

/// The table must be that of the automata. Incomplete if `building`, which may be null, has
/// stopped.
void find_limits(const std::vector<Automaton>& automata, Machines* table, Building* building);

}  // namespace gen::grammar
