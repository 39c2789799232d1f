// SPDX-License-Identifier: Apache-2.0
// Early selection: everything after the last attention is computed row by row, and only rows that
// want logits need it. This moves select_rows up the graph as far as possible, so that a prompt's
// rows skip most of the last layer. No row's result changes by a bit.
#pragma once

#include "graph/graph.h"

namespace gen::graph {

/// The same computation with rows selected as early as possible. Taps of values that are then
/// computed for selected rows only become selected themselves; the runner computes such values for
/// all rows when a batch asks for the tap.
Graph select_early(const Graph& graph);

}  // namespace gen::graph
