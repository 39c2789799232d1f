// SPDX-License-Identifier: Apache-2.0
// See word_search.h.
#include "grammar/base/word_search.h"

namespace gen::grammar {

WordSearch::WordSearch(std::span<const std::string> words) {
  add();
  for (uint32_t w = 0; w < words.size(); ++w) {
    uint32_t node = 0;
    for (const char c : words[w]) {
      const auto byte = static_cast<uint8_t>(c);
      if (nodes_[node].to[byte] == kNone) {
        const uint32_t made = add();
        nodes_[node].to[byte] = made;
      }
      node = nodes_[node].to[byte];
    }
    nodes_[node].word = w;
  }
  // Breadth first: missing transitions are those of the longest suffix that is a node.
  std::vector<uint32_t> open = {0};
  for (size_t i = 0; i < open.size(); ++i) {
    const uint32_t node = open[i];
    if (nodes_[node].word == kNone) nodes_[node].word = nodes_[nodes_[node].back].word;
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t& to = nodes_[node].to[byte];
      const uint32_t other = node == 0 ? 0 : nodes_[nodes_[node].back].to[byte];
      if (to == kNone) {
        to = other;
      } else {
        nodes_[to].back = other;
        open.push_back(to);
      }
    }
  }
}

}  // namespace gen::grammar
