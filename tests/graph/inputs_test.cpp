// SPDX-License-Identifier: Apache-2.0
// Proves that a node may read as many values as operations ever do: passes over graphs carry all of
// them, and a plan keeps each until it is read. No operation reads so many yet, so a scan is given
// more than it looks at.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "graph/early_exit.h"
#include "graph/engine_split.h"
#include "graph/execution_plan.h"
#include "graph/selection.h"
#include "support/reference_engine.h"

namespace gen::graph {
namespace {

constexpr size_t kMost = engine::kMaxInputs;
constexpr int64_t kWidth = 8;

/// Values of block 0, a scan of them in block 1, and an end.
class Wide {
 public:
  Wide() {
    std::iota(table_.begin(), table_.end(), 1.0F);
    const std::vector<float> ones(kWidth, 1.0F);
    GraphBuilder builder;
    builder.begin_block(0);
    const ValueId x = builder.embed(source("table"));
    builder.tap(0, x);
    std::vector<ValueId> made;
    for (size_t i = 0; i < kMost; ++i) made.push_back(builder.rms_norm(x, ones, 1e-5F));
    builder.begin_block(1);
    scan_ = builder.scan(made[0], made[1], made[2]).index;
    builder.tap(1, x);
    const ValueId sum = builder.add(x, {scan_});
    builder.begin_block(2);
    builder.tap(2, sum);
    builder.logits(builder.linear(builder.select_rows(sum), source("head"), {}, -1));
    graph = builder.finish().value();
    for (size_t i = 0; i < kMost; ++i) at(graph, scan_).inputs[i] = made[i].index;
  }
  static Node& at(Graph& of, int32_t node) { return of.nodes[static_cast<size_t>(node)]; }

  Graph graph;

 private:
  engine::WeightSource source(const char* name) const {
    return {name, DType::kF32, kWidth, kWidth, std::as_bytes(std::span(table_)), true};
  }
  std::vector<float> table_ = std::vector<float>(kWidth * kWidth);
  int32_t scan_ = -1;
};

Node scan_of(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kScan) return node;
  }
  return {};
}
std::set<int32_t> given(const Node& node) { return {node.inputs.begin(), node.inputs.end()}; }

TEST(Inputs, NodesHaveNoneUnlessTheyAreGiven) {
  for (const int32_t input : Node().inputs) EXPECT_EQ(input, -1);
  const NodeInputs two = {ValueId{4}, ValueId{7}};
  EXPECT_EQ(two[0], 4);
  EXPECT_EQ(two[1], 7);
  for (size_t i = 2; i < kMost; ++i) EXPECT_EQ(two[i], -1);
}

TEST(Inputs, PassesCarryAll) {
  Wide wide;
  const Graph cut = early_exit(wide.graph, 1).value();
  for (const Graph& graph : {wide.graph, select_early(wide.graph), cut}) {
    const Node scan = scan_of(graph);
    EXPECT_EQ(given(scan).size(), kMost);
    for (const int32_t input : scan.inputs) {
      EXPECT_EQ(graph.nodes[static_cast<size_t>(input)].op, Op::kRmsNorm);
    }
  }
  const std::vector<int32_t> blocks = {0, 1, 1};
  const Graph split = split_engines(wide.graph, blocks);
  EXPECT_EQ(given(scan_of(split)).size(), kMost);
  for (const int32_t input : scan_of(split).inputs) {
    EXPECT_EQ(split.nodes[static_cast<size_t>(input)].op, Op::kTransfer);
  }
}

TEST(Inputs, APlanKeepsAllUntilTheyAreRead) {
  const Wide wide;
  CompileOptions options;
  options.max_seq_len = 16;
  const auto plan = compile(wide.graph, std::make_shared<test::ReferenceEngine>(), options).value();
  size_t scans = 0;
  for (const Instruction& in : plan->instructions()) {
    if (in.op != Op::kScan) continue;
    ++scans;
    std::set<size_t> places;
    for (const Operand& x : in.x) {
      ASSERT_TRUE(x.present());
      places.insert(plan->values()[static_cast<size_t>(x.value)].offset);
    }
    EXPECT_EQ(places.size(), kMost);
  }
  EXPECT_EQ(scans, 1U);
}

}  // namespace
}  // namespace gen::graph
