// SPDX-License-Identifier: Apache-2.0
// WordSearch: the automaton of Aho and Corasick, which finds words in a text. No word may contain
// another one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gen::grammar {

class WordSearch {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    std::array<uint32_t, 256> to;  // by byte
    uint32_t word = kNone;         // that ends here
    uint32_t back = 0;             // the longest suffix of its text that is a node
  };

  explicit WordSearch(std::span<const std::string> words);
  /// [0] is the start.
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }

 private:
  uint32_t add() {
    nodes_.emplace_back().to.fill(kNone);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  std::vector<Node> nodes_;
};

}  // namespace gen::grammar
