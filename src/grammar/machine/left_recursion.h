// SPDX-License-Identifier: Apache-2.0
// Machines that call themselves, or each other in a ring, before they have read anything become
// machines that do not. What such a machine A accepts is: any member's way that begins without a
// call of the ring; then, as long as one likes, the rest of a member that began with a call of the
// one just finished; finished with A.
#pragma once

#include <vector>

#include "grammar/machine/automaton.h"

namespace gen::grammar {

/// False if the result takes more than `max_edges`, or `building` (may be null) has stopped.
[[nodiscard]] bool remove_left_recursion(std::vector<Automaton>* machines, Loops* loops,
                                         size_t max_edges, Building* building);

/// From callers to callees along calls from starts. There is no left recursion any more.
std::vector<uint32_t> call_order(const std::vector<Automaton>& machines);

}  // namespace gen::grammar
