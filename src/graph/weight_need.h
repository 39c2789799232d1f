// SPDX-License-Identifier: Apache-2.0
// What the weights of a graph would take of an engine's memory, before any is read.
#pragma once

#include <cstddef>

#include "engine/engine.h"
#include "graph/engine_split.h"

namespace gen::graph {

struct WeightNeed {
  size_t bytes = 0;  // of all weights of this engine
  /// Columns that the widest product reads and makes, together: what arenas hold is about that.
  size_t widest = 0;
  size_t widest_selected = 0;  // of rows that want something alone
};

/// Of engine number `index`, which is `engine`.
WeightNeed weight_need(const Graph& graph, EngineOfBlock engines, int32_t index,
                       const engine::Engine& engine);

}  // namespace gen::graph
