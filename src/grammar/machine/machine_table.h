// SPDX-License-Identifier: Apache-2.0
// Automata of all machines put into one table, without what leads nowhere.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/machine/automaton.h"
#include "grammar/base/building.h"
#include "grammar/machine/machines.h"

namespace gen::grammar {

/// Not whole if `building`, which may be null, has stopped.
Machines make_table(const std::vector<Automaton>& automata, std::vector<Loop> loops,
                    std::vector<Members> members, uint32_t root, Building* building);

}  // namespace gen::grammar
