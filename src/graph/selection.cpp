// SPDX-License-Identifier: Apache-2.0
// Moving select_rows up, in one pass back (what may move) and one forth (the new nodes). See
// selection.h.
#include "graph/selection.h"

#include <vector>

#include "base/to_size.h"

namespace gen::graph {
namespace {

using engine::Op;

/// Whether a node always works on all rows.
bool takes_all(const Node& node) { return node.op == Op::kMeanRows || !node.selected; }

/// Nodes whose value, except for taps, is needed for selected rows only.
std::vector<bool> movable(const Graph& graph) {
  const size_t count = graph.nodes.size();
  std::vector<bool> needed_whole(count, false);  // by a node that works on all rows
  std::vector<bool> needed(count, false);
  std::vector<bool> moves(count, false);
  for (size_t n = count; n-- > 0;) {
    const Node& node = graph.nodes[n];
    moves[n] = engine::op_info(node.op).row_wise && !node.selected && needed[n] && !needed_whole[n];
    if (node.op == Op::kTap) continue;
    const bool whole = !moves[n] && takes_all(node);
    for (const int32_t input : node.inputs) {
      if (input < 0) continue;
      needed[to_size(input)] = true;
      if (whole) needed_whole[to_size(input)] = true;
    }
  }
  return moves;
}

}  // namespace

Graph select_early(const Graph& graph) {
  const std::vector<bool> moves = movable(graph);
  Graph result = graph;
  result.nodes.clear();
  std::vector<int32_t> whole(graph.nodes.size(), -1);     // where a node's rows are now
  std::vector<int32_t> selected(graph.nodes.size(), -1);  // and its selected rows
  const auto push = [&](const Node& node) {
    result.nodes.push_back(node);
    return static_cast<int32_t>(result.nodes.size() - 1);
  };
  const auto select = [&](int32_t n) {
    if (selected[to_size(n)] < 0) {
      Node node;
      node.op = Op::kSelectRows;
      node.inputs[0] = whole[to_size(n)];
      node.cols = graph.nodes[to_size(n)].cols;
      node.index = graph.nodes[to_size(n)].index;
      node.selected = true;
      node.block = graph.nodes[to_size(n)].block;
      selected[to_size(n)] = push(node);
    }
    return selected[to_size(n)];
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node node = graph.nodes[n];
    if (node.op == Op::kSelectRows) {
      selected[n] = select(node.inputs[0]);
      continue;
    }
    const bool tap_moves = node.op == Op::kTap && moves[to_size(node.inputs[0])];
    if (moves[n] || tap_moves) node.selected = true;
    for (int32_t& input : node.inputs) {
      if (input >= 0) input = takes_all(node) ? whole[to_size(input)] : select(input);
    }
    (node.selected ? selected : whole)[n] = push(node);
  }
  return result;
}

}  // namespace gen::graph
