// SPDX-License-Identifier: Apache-2.0
// Removes left recursion: machines that call themselves, directly or through each other, before
// they have read anything. Such a machine A accepts: any path of a member of the cycle that does
// not begin with a call within the cycle; then, any number of times, the rest of a member's path
// that began with a call of the machine just finished; and it must finish with A.
#pragma once

#include <vector>

#include "grammar/machine/automaton.h"

namespace gen::grammar {

/// False if the result exceeds `max_edges`, or `building` (may be null) has stopped.
[[nodiscard]] bool remove_left_recursion(std::vector<Automaton>* machines, Loops* loops,
                                         size_t max_edges, Building* building);

/// Topological order, from callers to callees, along calls from starts. Requires that there is no
/// left recursion.
std::vector<uint32_t> call_order(const std::vector<Automaton>& machines);

}  // namespace gen::grammar
