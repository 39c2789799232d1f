// SPDX-License-Identifier: Apache-2.0
// See engine_split.h.
#include "graph/engine_split.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/to_size.h"

namespace gen::graph {

using engine::Op;

namespace {

class Splitter {
 public:
  Splitter(const Graph& graph, const EngineOfBlock& engines)
      : graph_(graph), engines_(engines), homes_(graph.nodes.size()), result_(graph) {
    result_.nodes.clear();
  }

  Graph run() {
    for (int32_t n = 0; to_size(n) < graph_.nodes.size(); ++n) {
      Node node = graph_.nodes[to_size(n)];
      node.engine = engine_for(engines_, node);
      const bool gives = engine::op_info(node.op).effect == engine::Effect::kHost;
      const bool stays =
          node.op == Op::kSelectRows || node.op == Op::kMeanRows || node.op == Op::kSlice;
      if (gives || stays) node.engine = homes_[to_size(node.inputs[0])];
      homes_[to_size(n)] = node.engine;
      if (node.op == Op::kSelectRows) continue;  // emitted for each engine that reads it
      for (int32_t& input : node.inputs) {
        if (input >= 0) input = value_on(input, node.engine);
      }
      places_[{n, node.engine}] = push(node);
    }
    return std::move(result_);
  }

 private:
  /// The value of a node, on `engine`.
  int32_t value_on(int32_t n, int32_t engine) {
    const auto known = places_.find({n, engine});
    if (known != places_.end()) return known->second;
    Node node = graph_.nodes[to_size(n)];
    const bool selects = node.op == Op::kSelectRows;
    const bool home = engine == homes_[to_size(n)];
    if (selects && (home || places_.count({node.inputs[0], engine}) != 0)) {
      node.inputs[0] = value_on(node.inputs[0], engine);
    } else {
      Node moved;
      moved.op = Op::kTransfer;
      moved.inputs[0] = value_on(n, homes_[to_size(n)]);
      moved.cols = node.cols;
      moved.slots = node.slots;
      moved.index = node.index;
      moved.routing = node.routing;
      moved.selected = node.selected;
      moved.block = node.block;
      node = moved;
    }
    node.engine = engine;
    const int32_t made = push(node);
    places_[{n, engine}] = made;
    return made;
  }

  int32_t push(const Node& node) {
    result_.nodes.push_back(node);
    return static_cast<int32_t>(result_.nodes.size() - 1);
  }

  const Graph& graph_;
  EngineOfBlock engines_;
  std::vector<int32_t> homes_;  // the engine that computes a node's value
  Graph result_;
  /// A node's value on an engine.
  std::map<std::pair<int32_t, int32_t>, int32_t> places_;
};

}  // namespace

int32_t engine_for(const EngineOfBlock& engines, int32_t block) noexcept {
  if (engines.empty()) return 0;
  return engines.blocks[std::min(to_size(std::max(block, 0)), engines.blocks.size() - 1)];
}

int32_t engine_for(const EngineOfBlock& engines, const Node& node) noexcept {
  if (!node.by_expert || engines.experts.empty()) return engine_for(engines, node.block);
  return engine_for({engines.experts, {}}, node.block);
}

Graph split_engines(const Graph& graph, const EngineOfBlock& engines) {
  return Splitter(graph, engines).run();
}

}  // namespace gen::graph
