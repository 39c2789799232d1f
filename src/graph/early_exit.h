// SPDX-License-Identifier: Apache-2.0
// The first blocks of a model, followed by what comes after its last one: a smaller model with the
// same weights, whose drafts the whole model may verify.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "graph/graph.h"

namespace gen::graph {

/// The graph with its first `blocks` blocks alone; weights are those of `graph`, by their number.
/// A plan of it can be compiled with the whole graph's plan as base, and then shares its weights.
/// kInvalidArgument for a number outside [1, all); kUnsupported where what comes after the last
/// block reads more than the hidden state, or the graph offers none between blocks.
Result<Graph> early_exit(const Graph& graph, int32_t blocks);

}  // namespace gen::graph
