// SPDX-License-Identifier: Apache-2.0
// Early exit: the first blocks of a model followed by its head. This is a smaller model with the
// same weights, whose drafts the whole model can verify.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "graph/graph.h"

namespace gen::graph {

/// The graph with only its first `blocks` blocks; weights keep their indices in `graph`. A plan of
/// it can be compiled with the whole graph's plan as base, and then shares its weights.
/// kInvalidArgument for a number outside [1, all); kUnsupported if the nodes after the last block
/// read more than the hidden state, or the graph offers no hidden states between blocks.
Result<Graph> early_exit(const Graph& graph, int32_t blocks);

}  // namespace gen::graph
