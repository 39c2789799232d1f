// SPDX-License-Identifier: Apache-2.0
// See cache_layers.h.
#include "graph/cache_layers.h"

namespace gen::graph {

cache::LayerShape cache_layer(const AttentionSpec& spec, const engine::RopeTable* table) {
  cache::LayerShape shape;
  shape.kv_heads = spec.n_kv_heads;
  shape.k_dim = spec.k_dim;
  shape.v_dim = spec.v_dim;
  shape.window = spec.window;
  shape.chunk = spec.chunk;
  if (table != nullptr) {
    shape.rope = table->kind;
    shape.rope_dims = table->n_dims;
    // Keys whose norm came after rotation cannot be rotated further.
    shape.rope_table = spec.norm_last ? nullptr : table;
  }
  return shape;
}

std::vector<cache::LayerShape> cache_layers(const Graph& graph,
                                            std::span<const engine::RopeTable> tables) {
  std::vector<cache::LayerShape> layers;
  for (const Node& node : graph.nodes) {
    const bool stores = node.op == engine::Op::kRopeAppend && node.attention.use == CacheUse::kOwn;
    if (!stores) continue;
    const int32_t rope = node.attention.rope;
    layers.push_back(
        cache_layer(node.attention, rope >= 0 ? &tables[static_cast<size_t>(rope)] : nullptr));
  }
  return layers;
}

}  // namespace gen::graph
