// SPDX-License-Identifier: Apache-2.0
// The layers of a cache for a graph: the only maker of cache::LayerShape outside of tests. A
// graph's attention nodes say how each block attends; the facts that a cache needs are derived from
// them and stated nowhere else.
#pragma once

#include <span>
#include <vector>

#include "cache/layer_shape.h"
#include "engine/ops.h"
#include "graph/graph.h"

namespace gen::graph {

/// What a cache needs to know about attention with these angles; null for none.
cache::LayerShape cache_layer(const AttentionSpec& spec, const engine::RopeTable* table);

/// One for each cache layer, by its number. `tables` are those of graph.ropes; shapes point at
/// them.
std::vector<cache::LayerShape> cache_layers(const Graph& graph,
                                            std::span<const engine::RopeTable> tables);

}  // namespace gen::graph
