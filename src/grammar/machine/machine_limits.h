// SPDX-License-Identifier: Apache-2.0
// What limits have to do with each state of a table of machines: State::limit, Machines::fewest and
// mixed, Loop::farthest.
#pragma once

#include <vector>

#include "grammar/machine/automaton.h"
#include "grammar/base/building.h"
#include "grammar/machine/machines.h"

namespace gen::grammar {

/// The table is that of the automata. Not whole if `building`, which may be null, has stopped.
void find_limits(const std::vector<Automaton>& automata, Machines* table, Building* building);

}  // namespace gen::grammar
