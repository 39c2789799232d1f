// SPDX-License-Identifier: Apache-2.0
// Strongly connected components of a graph: Tarjan's algorithm with an explicit stack.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace gen::grammar {

/// Nodes are added in order, each closed after its targets were added.
class Graph {
 public:
  explicit Graph(uint32_t n_nodes) {
    begins_.reserve(n_nodes + 1);
    begins_.push_back(0);
  }
  void add(uint32_t target) { targets_.push_back(target); }
  void close() { begins_.push_back(static_cast<uint32_t>(targets_.size())); }

  [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(begins_.size() - 1); }
  [[nodiscard]] std::span<const uint32_t> targets(uint32_t node) const noexcept {
    return std::span(targets_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }
  [[nodiscard]] bool has(uint32_t from, uint32_t to) const noexcept {
    const auto all = targets(from);
    return std::find(all.begin(), all.end(), to) != all.end();
  }

 private:
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> targets_;
};

/// Calls `visit` with the nodes of each component, after those of all components that it leads to.
template <typename Visit>
void components(const Graph& graph, Visit visit) {
  constexpr uint32_t kNew = UINT32_MAX;
  constexpr uint32_t kDone = UINT32_MAX - 1;
  struct Open {
    uint32_t node;
    uint32_t next;  // of its targets
    uint32_t low;
  };
  std::vector<uint32_t> index(graph.size(), kNew);
  std::vector<uint32_t> stack;
  std::vector<Open> open;
  uint32_t count = 0;
  const auto enter = [&](uint32_t node) {
    open.push_back({node, 0, count});
    index[node] = count++;
    stack.push_back(node);
  };
  for (uint32_t root = 0; root < graph.size(); ++root) {
    if (index[root] != kNew) continue;
    enter(root);
    while (!open.empty()) {
      Open& top = open.back();
      const auto targets = graph.targets(top.node);
      if (top.next < targets.size()) {
        const uint32_t target = targets[top.next++];
        if (index[target] == kNew) {
          enter(target);
        } else if (index[target] != kDone) {
          top.low = std::min(top.low, index[target]);
        }
        continue;
      }
      const Open done = top;
      open.pop_back();
      if (!open.empty()) open.back().low = std::min(open.back().low, done.low);
      if (done.low != index[done.node]) continue;
      const auto first = std::find(stack.rbegin(), stack.rend(), done.node).base() - 1;
      const auto at = static_cast<size_t>(first - stack.begin());
      for (size_t i = at; i < stack.size(); ++i) index[stack[i]] = kDone;
      visit(std::span<const uint32_t>(stack).subspan(at));
      stack.resize(at);
    }
  }
}

}  // namespace gen::grammar
