// SPDX-License-Identifier: Apache-2.0
// Proves that selection moves over everything that works row by row, and over nothing else.
#include "graph/selection.h"

#include <gtest/gtest.h>

#include <string>

#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

std::string kinds(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    text += engine::op_info(node.op).name;
    text += node.selected ? "* " : " ";
  }
  return text;
}

TEST(SelectEarly, MovesUpToTheLastAttention) {
  const test::TinyGraph tiny;
  const Graph early = select_early(tiny.graph());
  EXPECT_EQ(
      kinds(early),
      "embed tap "
      "rms_norm linear linear linear rope_append attention linear add "
      "rms_norm linear linear gated linear add tap "
      "rms_norm linear linear linear rope_append attention select_rows* linear* select_rows* add* "
      "rms_norm* linear* linear* gated* linear* add* tap* rms_norm* linear* logits* ");
  // Facts of the graph are as before.
  EXPECT_EQ(early.n_taps, tiny.graph().n_taps);
  EXPECT_EQ(early.weights.size(), tiny.graph().weights.size());
}

TEST(SelectEarly, TwiceIsOnce) {
  const test::TinyGraph tiny;
  const Graph once = select_early(tiny.graph());
  EXPECT_EQ(kinds(select_early(once)), kinds(once));
}

TEST(SelectEarly, KeepsRowsThatOthersNeed) {
  // The sum feeds attention as well as the end.
  GraphBuilder builder;
  const auto weight = [](const char* name, int64_t rows) {
    return engine::WeightSource{name, DType::kF32, rows, 4, {}, false};
  };
  const ValueId x = builder.embed(weight("e", 6));
  const ValueId sum = builder.add(x, x);
  AttentionSpec spec;
  spec.n_heads = spec.n_kv_heads = 1;
  spec.k_dim = spec.v_dim = 4;
  const ValueId q = builder.linear(sum, weight("q", 4), {}, 0);
  builder.attention(builder.rope_append(q, sum, sum, 0, spec), 0);
  builder.logits(builder.linear(builder.select_rows(sum), weight("h", 6), {}, 1));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(kinds(select_early(graph.value())),
            "embed add linear rope_append attention select_rows* linear* logits* ");
}

}  // namespace
}  // namespace gen::graph
