// SPDX-License-Identifier: Apache-2.0
// See row_end.h. Nodes that only the head needs are removed with it.
#include "graph/row_end.h"

#include <utility>
#include <vector>

#include "base/to_size.h"

namespace gen::graph {

using engine::Op;

Result<Graph> end_rows(const Graph& graph, RowEnd end) {
  if (graph.last_hidden < 0) {
    return error(Code::kUnsupported, "a model that names no hidden state");
  }
  const size_t last = to_size(graph.last_hidden);
  Graph cut = graph;
  cut.nodes.resize(last + 1);
  Node node;
  node.op = end == RowEnd::kMean ? Op::kMeanRows : Op::kSelectRows;
  node.inputs[0] = graph.last_hidden;
  node.cols = graph.nodes[last].cols;
  node.selected = true;
  node.block = graph.nodes[last].block;
  cut.nodes.push_back(node);
  node.op = Op::kLogits;
  node.inputs[0] = graph.last_hidden + 1;
  cut.nodes.push_back(node);
  std::vector<bool> used(graph.vectors.size(), false);
  for (const Node& kept : cut.nodes) {
    for (const int32_t vector : {kept.vector, kept.vector2}) {
      if (vector >= 0) used[to_size(vector)] = true;
    }
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) cut.vectors[i].clear();  // has no reader
  }
  cut.logits = node.cols;
  cut.scores = false;
  return cut;
}

}  // namespace gen::graph
