// SPDX-License-Identifier: Apache-2.0
// The common part of prefix caches and radix indices: a tree of token sequences with one level for
// each block of tokens, which remembers the order in which its nodes were used. A node's children
// are sorted by a key of the caller's (a hash, or none) and then by their tokens, so that a block
// is found by both, and neighbours have the longest common prefixes. Read next: radix_cache.h,
// prefix_cache.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gen::cache {

class Block;
class StateSnapshot;

/// Invariants: only a node of block_size() tokens has children. Nodes that nobody holds are in a
/// list in the order of use. Using a node uses its ancestors after it, so a node comes before its
/// parent in the list, and the first one has no children. The ancestors of a held node are held,
/// too. Threads: not synchronised.
class BlockTree {
 public:
  using Tokens = std::span<const int32_t>;

  struct Node {
    int32_t id = -1;             // in [0, max_blocks()), of no other node; -1 before it is added
    std::vector<Block*> blocks;  // this and the next six are for the tree's owner
    uint64_t used = 0;
    uint64_t window_used = 0;
    std::shared_ptr<const StateSnapshot> snapshot;
    uint64_t snapshot_used = 0;
    bool snapshot_passes = false;
    size_t pins = 0;
    std::vector<int32_t> tokens;  // the owner may append some if no sibling begins with the new
                                  // tokens

   private:
    friend class BlockTree;
    uint64_t key_ = 0;
    Node* parent_ = nullptr;
    std::vector<std::unique_ptr<Node>> children_;  // by key, then tokens
    Node* older_ = nullptr;                        // while nobody holds the node
    Node* newer_ = nullptr;
    size_t holds_ = 0;
  };
  /// One below the other.
  using Chain = std::vector<std::unique_ptr<Node>>;

  /// Both at least 1.
  BlockTree(int32_t block_size, int32_t max_blocks) noexcept
      : block_size_(static_cast<size_t>(block_size)), max_blocks_(max_blocks) {}
  BlockTree(const BlockTree&) = delete;
  BlockTree& operator=(const BlockTree&) = delete;
  ~BlockTree();

  [[nodiscard]] size_t block_size() const noexcept { return block_size_; }
  [[nodiscard]] int32_t max_blocks() const noexcept { return max_blocks_; }
  [[nodiscard]] int32_t size() const noexcept { return size_; }
  /// The root: has no tokens and no id, and is never in the order of use.
  [[nodiscard]] Node& root() noexcept { return root_; }
  [[nodiscard]] static Node* parent(const Node& node) noexcept { return node.parent_; }
  [[nodiscard]] static bool held(const Node& node) noexcept { return node.holds_ > 0; }
  [[nodiscard]] static std::span<const std::unique_ptr<Node>> children(const Node& node) noexcept {
    return node.children_;
  }

  /// The number of blocks for `n` tokens, of which the last may be partly filled; and the tokens in
  /// one of them.
  [[nodiscard]] size_t pieces(size_t n) const noexcept {
    return n / block_size_ + (n % block_size_ != 0 ? 1 : 0);
  }
  [[nodiscard]] Tokens piece(Tokens tokens, size_t index) const noexcept;

  /// The child of this key with exactly these tokens, or null.
  [[nodiscard]] Node* find(const Node& parent, uint64_t key, Tokens tokens) const noexcept;
  /// The child of this key that begins with the most of these tokens, and how many; 0 and null if
  /// none has the first.
  struct Near {
    Node* node = nullptr;
    size_t common = 0;
  };
  [[nodiscard]] Near nearest(const Node& parent, uint64_t key, Tokens tokens) const noexcept;

  /// How many nodes can be added below `parent` if all nodes are evicted that are neither held nor
  /// on the path to it.
  [[nodiscard]] size_t room_below(const Node& parent) const noexcept;
  /// Prepares nodes, one for each piece, to be added below `parent`. Only this step can fail.
  struct Piece {
    uint64_t key = 0;
    Tokens tokens;
  };
  [[nodiscard]] Chain prepare(Node& parent, std::span<const Piece> pieces);
  /// Adds a prepared node, held once. size() is below max_blocks().
  Node& add(Node& parent, std::unique_ptr<Node> node) noexcept;
  /// Removes a node that has no children and is not held.
  void remove(Node& node) noexcept;

  /// Holds a node and its ancestors; calls nest. Releasing a node counts as a use.
  void hold(Node& node) noexcept;
  void release(Node& node) noexcept;
  void touch(Node& node) noexcept;
  /// The least recently used node, or null; and the one after it.
  [[nodiscard]] Node* oldest() const noexcept { return oldest_; }
  [[nodiscard]] static Node* newer(const Node& node) noexcept { return node.newer_; }

 private:
  using ChildIterator = std::vector<std::unique_ptr<Node>>::const_iterator;

  static ChildIterator lower_bound(const Node& parent, uint64_t key, Tokens tokens) noexcept;
  void link(Node& node) noexcept;
  void unlink(Node& node) noexcept;

  const size_t block_size_;
  const int32_t max_blocks_;
  Node root_;
  Node* oldest_ = nullptr;
  Node* newest_ = nullptr;
  size_t linked_ = 0;
  int32_t size_ = 0;
  int32_t next_id_ = 0;
  std::vector<int32_t> free_ids_;  // last freed, first used
};

}  // namespace gen::cache
