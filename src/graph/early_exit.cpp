// SPDX-License-Identifier: Apache-2.0
// See early_exit.h. Taps say where a block ends and which value is the hidden state there.
#include "graph/early_exit.h"

#include <algorithm>
#include <vector>

#include "base/to_size.h"

namespace gen::graph {
namespace {

using engine::Op;

size_t tap_of(const Graph& graph, int32_t layer) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.op == Op::kTap && node.layer == layer;
  });
  return static_cast<size_t>(found - graph.nodes.begin());
}

}  // namespace

Result<Graph> early_exit(const Graph& graph, int32_t blocks) {
  const int32_t all = graph.n_taps - 1;
  if (all < 2) return error(Code::kUnsupported, "a model of %d layers has no exit", all);
  if (blocks < 1 || blocks >= all) {
    return error(Code::kInvalidArgument, "an exit after %d of %d layers, outside [1, %d]", blocks,
                 all, all - 1);
  }
  const size_t here = tap_of(graph, blocks);
  const size_t end = tap_of(graph, all);
  Graph cut = graph;
  cut.nodes.clear();
  std::vector<int32_t> moved(graph.nodes.size(), -1);
  std::vector<bool> used(graph.vectors.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i > here && i <= end) continue;
    Node node = graph.nodes[i];
    for (int32_t& input : node.inputs) {
      if (input < 0) continue;
      if (i > end && input == graph.nodes[end].inputs[0]) input = graph.nodes[here].inputs[0];
      input = moved[to_size(input)];
      if (input < 0) {
        return error(Code::kUnsupported, "the model's end reads more than its last layer");
      }
    }
    for (const int32_t vector : {node.vector, node.vector2}) {
      if (vector >= 0) used[to_size(vector)] = true;
    }
    moved[i] = static_cast<int32_t>(cut.nodes.size());
    cut.nodes.push_back(node);
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) cut.vectors[i].clear();  // has no reader
  }
  const auto states = std::count_if(cut.nodes.begin(), cut.nodes.end(), [](const Node& node) {
    return engine::op_info(node.op).effect == engine::Effect::kState;
  });
  cut.states.resize(static_cast<size_t>(states));
  cut.facts.resize(static_cast<size_t>(states));
  cut.n_taps = blocks + 1;
  if (cut.last_hidden >= 0) cut.last_hidden = moved[to_size(cut.last_hidden)];
  return cut;
}

}  // namespace gen::graph
