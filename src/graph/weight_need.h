// SPDX-License-Identifier: Apache-2.0
// Estimates the engine memory of a graph's weights before any is read.
#pragma once

#include <cstddef>

#include "engine/engine.h"
#include "graph/engine_split.h"

namespace gen::graph {

struct WeightNeed {
  size_t bytes = 0;  // of all weights of this engine
  /// Input plus output columns of the widest product, which is about the width of arenas.
  size_t widest = 0;
  size_t widest_selected = 0;  // the same for selected rows
};

/// Of engine number `index`, which is `engine`.
WeightNeed weight_need(const Graph& graph, const EngineOfBlock& engines, int32_t index,
                       const engine::Engine& engine);

}  // namespace gen::graph
