// SPDX-License-Identifier: Apache-2.0
// Models that return hidden states instead of logits, for embeddings and rankings.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "graph/graph.h"

namespace gen::graph {

/// The result of a row. For one vector per sequence, callers use the first row, the last row, or
/// the mean at the last row.
enum class RowEnd : uint8_t {
  kHidden,  // the hidden state after the final norm
  kMean,    // the mean of these, of the rows of its sequence up to it, which come in one step
};

/// The graph without its head, whose rows have that result; weights are those of `graph`, by their
/// number. A plan of it can be compiled with the whole graph's plan as base, and then shares its
/// weights. kUnsupported for a graph that names no hidden state.
Result<Graph> end_rows(const Graph& graph, RowEnd end);

}  // namespace gen::graph
