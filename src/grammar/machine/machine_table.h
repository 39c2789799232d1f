// SPDX-License-Identifier: Apache-2.0
// Puts the automata of all machines into one table, without states that lead to no end.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/machine/automaton.h"
#include "grammar/base/building.h"
#include "grammar/machine/machines.h"

namespace gen::grammar {

/// Incomplete if `building`, which may be null, has stopped.
Machines make_table(const std::vector<Automaton>& automata, std::vector<Loop> loops,
                    std::vector<Members> members, uint32_t root, Building* building);

}  // namespace gen::grammar
