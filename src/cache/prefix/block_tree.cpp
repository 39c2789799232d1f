// SPDX-License-Identifier: Apache-2.0
// See block_tree.h.
#include "cache/prefix/block_tree.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace gen::cache {
namespace {

/// Reserves memory for `size` elements with geometric growth.
template <typename T>
void make_room(std::vector<T>& vector, size_t size) {
  if (vector.capacity() < size) vector.reserve(std::max(size, 2 * vector.capacity()));
}

size_t common_beginning(BlockTree::Tokens a, BlockTree::Tokens b) noexcept {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(differ.first - a.begin());
}

}  // namespace

BlockTree::~BlockTree() {
  // Iterative, because a path may be deeper than the stack.
  Node* node = &root_;
  while (node != nullptr) {
    if (!node->children_.empty()) {
      node = node->children_.back().get();
    } else {
      node = node->parent_;
      if (node != nullptr) node->children_.pop_back();
    }
  }
}

BlockTree::Tokens BlockTree::piece(Tokens tokens, size_t index) const noexcept {
  const Tokens rest = tokens.subspan(index * block_size_);
  return rest.first(std::min(rest.size(), block_size_));
}

BlockTree::ChildIterator BlockTree::lower_bound(const Node& parent, uint64_t key,
                                                Tokens tokens) noexcept {
  return std::lower_bound(parent.children_.begin(), parent.children_.end(), tokens,
                          [key](const std::unique_ptr<Node>& child, Tokens wanted) {
                            if (child->key_ != key) return child->key_ < key;
                            return std::lexicographical_compare(child->tokens.begin(),
                                                                child->tokens.end(), wanted.begin(),
                                                                wanted.end());
                          });
}

BlockTree::Node* BlockTree::find(const Node& parent, uint64_t key, Tokens tokens) const noexcept {
  const ChildIterator at = lower_bound(parent, key, tokens);
  if (at == parent.children_.end()) return nullptr;
  Node* const child = at->get();
  const bool same = child->key_ == key && std::equal(child->tokens.begin(), child->tokens.end(),
                                                     tokens.begin(), tokens.end());
  return same ? child : nullptr;
}

BlockTree::Near BlockTree::nearest(const Node& parent, uint64_t key, Tokens tokens) const noexcept {
  Near best;
  const auto look = [&](Node& child) {
    if (child.key_ != key) return;
    const size_t common = common_beginning(child.tokens, tokens);
    if (common > best.common) best = {&child, common};
  };
  const ChildIterator at = lower_bound(parent, key, tokens);
  if (at != parent.children_.end()) look(**at);
  if (at != parent.children_.begin()) look(**std::prev(at));
  return best;
}

size_t BlockTree::room_below(const Node& parent) const noexcept {
  size_t above = 0;
  for (const Node* node = &parent; node->parent_ != nullptr; node = node->parent_) {
    if (node->holds_ == 0) ++above;
  }
  return static_cast<size_t>(max_blocks_ - size_) + linked_ - above;
}

BlockTree::Chain BlockTree::prepare(Node& parent, std::span<const Piece> pieces) {
  Chain chain;
  if (pieces.empty()) return chain;
  make_room(parent.children_, parent.children_.size() + 1);
  make_room(free_ids_, static_cast<size_t>(next_id_) + pieces.size());
  chain.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    if (!chain.empty()) chain.back()->children_.reserve(1);
    chain.push_back(std::make_unique<Node>());
    chain.back()->key_ = piece.key;
    chain.back()->tokens.assign(piece.tokens.begin(), piece.tokens.end());
  }
  return chain;
}

BlockTree::Node& BlockTree::add(Node& parent, std::unique_ptr<Node> node) noexcept {
  GEN_ASSERT(size_ < max_blocks_ && parent.children_.size() < parent.children_.capacity());
  Node& added = *node;
  if (free_ids_.empty()) {
    added.id = next_id_++;
  } else {
    added.id = free_ids_.back();
    free_ids_.pop_back();
  }
  added.parent_ = &parent;
  added.holds_ = 1;
  parent.children_.insert(lower_bound(parent, added.key_, added.tokens), std::move(node));
  ++size_;
  return added;
}

void BlockTree::remove(Node& node) noexcept {
  GEN_ASSERT(node.children_.empty() && node.holds_ == 0 && node.parent_ != nullptr);
  unlink(node);
  free_ids_.push_back(node.id);
  --size_;
  Node& parent = *node.parent_;
  parent.children_.erase(lower_bound(parent, node.key_, node.tokens));
}

void BlockTree::hold(Node& last) noexcept {
  for (Node* node = &last; node->parent_ != nullptr; node = node->parent_) {
    if (node->holds_++ == 0) unlink(*node);
  }
}

void BlockTree::release(Node& last) noexcept {
  for (Node* node = &last; node->parent_ != nullptr; node = node->parent_) {
    GEN_ASSERT(node->holds_ > 0);
    if (--node->holds_ == 0) link(*node);
  }
}

void BlockTree::touch(Node& last) noexcept {
  for (Node* node = &last; node->parent_ != nullptr; node = node->parent_) {
    if (node->holds_ > 0) continue;
    unlink(*node);
    link(*node);
  }
}

void BlockTree::link(Node& node) noexcept {
  node.older_ = newest_;
  node.newer_ = nullptr;
  (newest_ != nullptr ? newest_->newer_ : oldest_) = &node;
  newest_ = &node;
  ++linked_;
}

void BlockTree::unlink(Node& node) noexcept {
  (node.older_ != nullptr ? node.older_->newer_ : oldest_) = node.newer_;
  (node.newer_ != nullptr ? node.newer_->older_ : newest_) = node.older_;
  node.older_ = nullptr;
  node.newer_ = nullptr;
  --linked_;
}

}  // namespace gen::cache
