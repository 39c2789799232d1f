// SPDX-License-Identifier: Apache-2.0
// See weight_need.h.
#include "graph/weight_need.h"

#include <algorithm>

#include "base/to_size.h"
#include "graph/fusion.h"

namespace gen::graph {

WeightNeed weight_need(const Graph& graph, const EngineOfBlock& engines, int32_t index,
                       const engine::Engine& engine) {
  const Program program = fuse(graph, {}, engines);
  WeightNeed need;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.product < 0 || instruction.engine != index) continue;
    const Product& product = program.products[to_size(instruction.product)];
    size_t bytes = engine.weight_bytes(product.role, product.sources);
    const auto slots = [&](const Operand& of) {
      return of.present() ? to_size(program.values[to_size(of.value)].slots) : 1;
    };
    size_t cols = static_cast<size_t>(product.sources[0].cols) * slots(instruction.x[0]);
    for (const engine::WeightSource& source : product.sources) {
      if (product.role != engine::WeightRole::kEmbedding) {
        cols += static_cast<size_t>(source.rows) * slots(instruction.y);
      }
      // If refused together, as gates of two types are, they become separate weights.
      if (bytes == 0) need.bytes += engine.weight_bytes(engine::WeightRole::kLinear, {&source, 1});
    }
    need.bytes += bytes;
    size_t& widest = instruction.selected ? need.widest_selected : need.widest;
    widest = std::max(widest, cols);
  }
  return need;
}

}  // namespace gen::graph
