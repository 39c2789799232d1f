// SPDX-License-Identifier: Apache-2.0
// PieceTrie, see piece_trie.h.
#include "tokenizer/piece_trie.h"

#include <algorithm>

namespace gen::tokenizer {

PieceTrie::PieceTrie(std::vector<TriePiece> pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const TriePiece& a, const TriePiece& b) { return a.text < b.text; });
  // The pieces [first, last) begin with the bytes that lead to a node; the one that ends there, if
  // any, is the first of them. Of the level that is being made and of the one before it.
  struct Range {
    uint32_t first;
    uint32_t last;
  };
  std::vector<Range> level = {{0, static_cast<uint32_t>(pieces.size())}};
  std::vector<Range> below;
  nodes_.push_back({1, -1});
  bytes_.push_back('\0');
  for (size_t depth = 0; !level.empty(); ++depth) {
    size_t node = nodes_.size() - level.size();
    for (const Range& range : level) {
      nodes_[node].children = static_cast<uint32_t>(nodes_.size());
      uint32_t first = range.first;
      if (first < range.last && pieces[first].text.size() == depth) {
        nodes_[node].piece = pieces[first++].id;
      }
      while (first < range.last) {
        const char byte = pieces[first].text[depth];
        uint32_t last = first + 1;
        while (last < range.last && pieces[last].text[depth] == byte) ++last;
        below.push_back({first, last});
        nodes_.push_back({0, -1});
        bytes_.push_back(byte);
        first = last;
      }
      ++node;
    }
    level.swap(below);
    below.clear();
  }
  nodes_.push_back({static_cast<uint32_t>(nodes_.size()), -1});
}

PieceTrie::Longest PieceTrie::longest(std::string_view text, size_t begin) const noexcept {
  Longest found;
  uint32_t node = kRoot;
  for (size_t end = begin; end < text.size();) {
    node = step(node, text[end]);
    if (node == kNowhere) break;
    ++end;
    if (piece(node) >= 0) found = {piece(node), end};
  }
  return found;
}

}  // namespace gen::tokenizer
