// SPDX-License-Identifier: Apache-2.0
// A graph on several engines: which engine runs each node, and transfers where a value is made on
// one engine and read on another.
#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace gen::graph {

/// The engine of each block of the model, by number. Nodes before the first block run on that
/// block's engine, nodes after the last one on the last block's. Empty: all on engine 0.
using EngineOfBlock = std::span<const int32_t>;

int32_t engine_for(EngineOfBlock engines, int32_t block) noexcept;

/// The same graph with every node's engine set. Taps and logits stay where their rows are, and rows
/// are selected before they move, unless all of them move anyway.
Graph split_engines(const Graph& graph, EngineOfBlock engines);

}  // namespace gen::graph
