// SPDX-License-Identifier: Apache-2.0
// PieceTrie: walks a text byte by byte past all pieces that begin at one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace gen::tokenizer {

struct TriePiece {
  std::string_view text;
  int32_t id;
};

/// Storage: nodes level by level, so that the children of a node are adjacent; the bytes that lead
/// to nodes are in a separate array, for a fast search. 9 bytes per node, at most as many nodes as
/// the pieces have bytes. Threads: immutable.
class PieceTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNowhere = UINT32_MAX;

  /// Texts are not empty and all different, together less than 2 GiB.
  explicit PieceTrie(std::vector<TriePiece> pieces);

  /// The node that `byte` leads to from `node`, or kNowhere.
  [[nodiscard]] uint32_t step(uint32_t node, char byte) const noexcept {
    const uint32_t first = nodes_[node].children;
    const void* found = std::memchr(bytes_.data() + first, static_cast<unsigned char>(byte),
                                    nodes_[node + 1].children - first);
    if (found == nullptr) return kNowhere;
    return static_cast<uint32_t>(static_cast<const char*>(found) - bytes_.data());
  }
  /// The piece that ends in `node`, or -1.
  [[nodiscard]] int32_t piece(uint32_t node) const noexcept { return nodes_[node].piece; }
  struct Longest {
    int32_t piece = -1;
    size_t end = 0;
  };
  /// The longest piece that begins at `begin` and where it ends; -1 if there is none.
  [[nodiscard]] Longest longest(std::string_view text, size_t begin) const noexcept;

 private:
  struct Node {
    uint32_t children;  // the first; the next node's is their end
    int32_t piece;
  };

  std::vector<Node> nodes_;  // [nodes + 1]
  std::vector<char> bytes_;  // [nodes], that lead there
};

}  // namespace gen::tokenizer
