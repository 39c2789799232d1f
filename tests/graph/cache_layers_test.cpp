// SPDX-License-Identifier: Apache-2.0
// Proves that caches get from a graph's attention nodes what their blocks say, number by number.
#include "graph/cache_layers.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

engine::WeightSource weight(const char* name, int64_t rows, int64_t cols) {
  return {name, DType::kF32, rows, cols, {}, false};
}

/// A graph of blocks with attention and nothing else.
class Blocks {
 public:
  Blocks() : x_(builder_.embed(weight("table", 10, 8))) {}

  void attend(const AttentionSpec& spec) {
    const auto part = [&](const char* name, int32_t heads, int32_t dim) {
      return builder_.linear(x_, weight(name, int64_t{heads} * dim, 8), {}, 0);
    };
    const ValueId q = builder_.rope_append(part("q", spec.n_heads, spec.k_dim),
                                           part("k", spec.n_kv_heads, spec.k_dim),
                                           part("v", spec.n_kv_heads, spec.v_dim), block_, spec);
    const ValueId a = builder_.attention(q, block_);
    x_ = builder_.linear(a, weight("o", 8, int64_t{spec.n_heads} * spec.v_dim), {}, 0);
    ++block_;
  }
  int32_t table(engine::RopeKind kind, std::vector<float> frequencies) {
    const auto dims = static_cast<int32_t>(2 * frequencies.size());
    return builder_.rope_table({kind, dims, std::move(frequencies), 1.0F});
  }
  Graph finish() {
    builder_.logits(builder_.linear(builder_.select_rows(x_), weight("head", 10, 8), {}, 0));
    auto graph = builder_.finish();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return graph.ok() ? std::move(graph).value() : Graph();
  }

 private:
  GraphBuilder builder_;
  ValueId x_;
  int32_t block_ = 0;
};

std::vector<engine::RopeTable> tables_of(const Graph& graph) {
  std::vector<engine::RopeTable> tables;
  for (const RopeSpec& rope : graph.ropes) {
    tables.push_back({rope.kind, rope.n_dims, rope.inv_freq.data(), rope.magnitude});
  }
  return tables;
}

TEST(CacheLayers, SayWhatTheBlocksSay) {
  Blocks blocks;
  const int32_t wide = blocks.table(engine::RopeKind::kHalves, {1.0F, 0.5F});
  const int32_t narrow = blocks.table(engine::RopeKind::kAdjacent, {1.0F});
  AttentionSpec spec;
  spec.n_heads = 4;
  spec.n_kv_heads = 2;
  spec.k_dim = 6;
  spec.v_dim = 10;
  spec.rope = narrow;
  spec.window = 7;
  blocks.attend(spec);
  spec.n_kv_heads = 1;
  spec.k_dim = 8;
  spec.v_dim = 5;
  spec.rope = wide;
  spec.window = 0;
  spec.chunk = 16;
  blocks.attend(spec);
  spec.n_kv_heads = 4;
  spec.rope = -1;
  blocks.attend(spec);
  const Graph graph = blocks.finish();
  const std::vector<engine::RopeTable> tables = tables_of(graph);
  const std::vector<cache::LayerShape> layers = cache_layers(graph, tables);
  // kv heads, key elements, value elements, window, rotary kind and elements, chunk, angles
  const std::vector<cache::LayerShape> want = {
      {2, 6, 10, 7, engine::RopeKind::kAdjacent, 2, 0, &tables[1]},
      {1, 8, 5, 0, engine::RopeKind::kHalves, 4, 16, &tables[0]},
      {4, 8, 5, 0, engine::RopeKind::kNone, 0, 16, nullptr},
  };
  ASSERT_EQ(layers.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const cache::ShapeDifference found = cache::shape_difference(layers[i], want[i]);
    EXPECT_FALSE(found) << "layer " << i << ": " << found.what << " " << found.first << ", not "
                        << found.second;
    EXPECT_EQ(layers[i].rope_table, want[i].rope_table) << i;
  }
}

TEST(CacheLayers, OfATinyGraph) {
  const test::TinyGraph tiny;
  const auto layers = cache_layers(tiny.graph(), tables_of(tiny.graph()));
  const auto want = tiny.layer_shapes();
  ASSERT_EQ(layers.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_FALSE(cache::shape_difference(layers[i], want[i])) << i;
  }
}

}  // namespace
}  // namespace gen::graph
