// SPDX-License-Identifier: Apache-2.0
// A graph on several engines: which engine runs each node, and transfers where a value is made on
// one engine and read on another.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace gen::graph {

/// The engine of each block of the model, by number. Nodes before the first block run on that
/// block's engine, nodes after the last one on the last block's. Empty: all on engine 0.
struct EngineOfBlock {
  EngineOfBlock() = default;
  template <typename Numbers>
    requires std::convertible_to<const Numbers&, std::span<const int32_t>>
  EngineOfBlock(const Numbers& of_blocks) : blocks(of_blocks) {}  // borrowed
  EngineOfBlock(std::span<const int32_t> of_blocks, std::span<const int32_t> of_experts)
      : blocks(of_blocks), experts(of_experts) {}

  std::span<const int32_t> blocks;
  std::span<const int32_t> experts;  // the engine of each block's experts; empty: the block's

  [[nodiscard]] bool empty() const noexcept { return blocks.empty(); }
};

int32_t engine_for(const EngineOfBlock& engines, int32_t block) noexcept;
/// The engine of a node of the given graph, which for those of Node::by_expert is the experts'.
int32_t engine_for(const EngineOfBlock& engines, const Node& node) noexcept;

/// The same graph with every node's engine set. Taps and logits stay where their rows are, and rows
/// are selected before they move, unless all of them move anyway.
Graph split_engines(const Graph& graph, const EngineOfBlock& engines);

}  // namespace gen::graph
