// SPDX-License-Identifier: Apache-2.0
// A graph on several engines: which one runs a node, and transfers where a value is made on one and
// read on another.
#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace gen::graph {

/// The engine of each block of the model, by number. What comes before the first block is run where
/// that is, what comes after the last one in the list where that is. Empty: all on engine 0.
using EngineOfBlock = std::span<const int32_t>;

int32_t engine_for(EngineOfBlock engines, int32_t block) noexcept;

/// The same graph with every node's engine set. Taps and logits stay where their rows are, and rows
/// are selected before they move, unless all of them move anyway.
Graph split_engines(const Graph& graph, EngineOfBlock engines);

}  // namespace gen::graph
