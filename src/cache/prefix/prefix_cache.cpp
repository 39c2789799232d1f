// SPDX-License-Identifier: Apache-2.0
// See prefix_cache.h. The tokens of one child of a node are never a prefix of another's: an
// incomplete last block is replaced by one that continues it, and not added if such a block exists.
#include "cache/prefix/prefix_cache.h"

#include <algorithm>
#include <utility>

namespace gen::cache {

PrefixHit::~PrefixHit() {
  for (Block* block : blocks_) {
    const Status released = pool_->release(block);
    GEN_ASSERT(released.ok());
  }
}

Result<std::shared_ptr<PrefixCache>> PrefixCache::create(std::shared_ptr<BlockPool> pool,
                                                         int32_t capacity) {
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "a prefix cache of %d blocks: at least 1", capacity);
  }
  std::shared_ptr<PrefixCache> made(new PrefixCache(std::move(pool), capacity));
  made->pool_->add_saver(*made);
  return made;
}

PrefixCache::~PrefixCache() {
  pool_->remove_saver(*this);
  while (Node* const node = tree_.oldest()) drop(*node);
}

uint64_t PrefixCache::domain(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = domains_.find(name);
  if (found != domains_.end()) return found->second;
  return domains_.emplace(name, domains_.size() + 1).first->second;
}

void PrefixCache::release(Block* block) noexcept {
  const Status released = pool_->release(block);
  GEN_ASSERT(released.ok());
}

void PrefixCache::keep(Node& node, std::shared_ptr<const StateSnapshot> snapshot,
                       const SnapshotTerms& terms, Uses::node_type use) noexcept {
  node.snapshot = std::move(snapshot);
  node.snapshot_passes = terms.passes;
  node.snapshot_used = use.key() = ++uses_;
  use.mapped() = &node;
  snapshot_bytes_ += node.snapshot->bytes();
  snapshots_.insert(snapshots_.end(), std::move(use));
  while (snapshot_bytes_ > terms.budget) drop_snapshot(*snapshots_.begin()->second);
}

void PrefixCache::use_snapshot(Node& node) noexcept {
  Uses::node_type use = snapshots_.extract(node.snapshot_used);
  node.snapshot_used = use.key() = ++uses_;
  node.snapshot_passes = false;
  snapshots_.insert(snapshots_.end(), std::move(use));
}

void PrefixCache::drop_snapshot(Node& node) noexcept {
  if (node.snapshot == nullptr) return;
  snapshot_bytes_ -= node.snapshot->bytes();
  snapshots_.erase(node.snapshot_used);
  node.snapshot.reset();
}

void PrefixCache::drop(Node& node) noexcept {
  drop_snapshot(node);
  Block* const block = node.block;
  tree_.remove(node);
  size_.store(tree_.size(), std::memory_order_relaxed);
  release(block);
}

void PrefixCache::evict(Node& node) noexcept {
  evicted_.fetch_add(1, std::memory_order_relaxed);
  drop(node);
}

void PrefixCache::clear() noexcept {
  const std::lock_guard lock(mutex_);
  while (Node* const node = tree_.oldest()) drop(*node);
}

// A block written by the caller has 0 entries here; the caller is responsible for it.
Status PrefixCache::check_written(const Block& block, size_t tokens) const {
  const auto used = static_cast<size_t>(block.used());
  if (used == 0 || used >= tokens) return {};
  return error(Code::kInvalidArgument, "a block of %zu written positions for %zu tokens", used,
               tokens);
}

Status PrefixCache::insert(uint64_t domain, Tokens tokens, std::span<Block* const> blocks,
                           std::shared_ptr<const StateSnapshot> after, SnapshotTerms terms) {
  if (tokens.empty() || blocks.empty()) return {};
  if (after != nullptr && tokens.size() % tree_.block_size() != 0) {
    return error(Code::kInvalidArgument, "a snapshot after %zu tokens, within a block of %zu",
                 tokens.size(), tree_.block_size());
  }
  const size_t pieces = tree_.pieces(tokens.size());
  if (blocks.size() < pieces) {
    return error(Code::kInvalidArgument, "%zu blocks of %zu positions do not hold %zu tokens",
                 blocks.size(), tree_.block_size(), tokens.size());
  }
  const std::lock_guard lock(mutex_);
  Uses::node_type use;
  if (after != nullptr) {
    Uses one;
    one.emplace(0, nullptr);
    use = one.extract(one.begin());
  }
  Node* passed = nullptr;  // has the snapshot that this one replaces
  Node* known = &tree_.root();
  Node* unfinished = nullptr;  // a child that the next block replaces
  size_t first = 0;            // index of the first unknown block
  for (; first < pieces; ++first) {
    const Tokens piece = tree_.piece(tokens, first);
    const BlockTree::Near near = tree_.nearest(*known, key(*known, domain), piece);
    if (near.common == piece.size()) {
      known = near.node;
      const bool replaced = (first + 1) * tree_.block_size() == terms.instead_of;
      if (replaced && after != nullptr && known->snapshot_passes) passed = known;
    } else {
      if (near.node != nullptr && near.common == near.node->tokens.size()) unfinished = near.node;
      break;
    }
  }
  const size_t replaced = unfinished != nullptr ? 1 : 0;
  Node& parent = unfinished != nullptr ? *unfinished : *known;
  const size_t missing = pieces - first;
  const size_t added = std::min(missing - replaced, tree_.room_below(parent));
  std::vector<BlockTree::Piece> fresh;
  fresh.reserve(added);
  for (size_t i = first + replaced; i < first + replaced + added; ++i) {
    fresh.push_back({i == 0 ? domain : 0, tree_.piece(tokens, i)});
  }
  std::vector<int32_t> longer;
  if (unfinished != nullptr) {
    const Tokens piece = tree_.piece(tokens, first);
    longer.assign(piece.begin(), piece.end());
  }
  BlockTree::Chain chain = tree_.prepare(parent, fresh);
  const auto kept = blocks.subspan(first, replaced + added);
  GEN_TRY(pool_->retain(kept));
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t covered = tree_.piece(tokens, first + i).size();
    if (Status written = check_written(*kept[i], covered); !written.ok()) {
      for (Block* block : kept) release(block);
      return written;
    }
  }

  // Nothing below can fail.
  for (size_t i = 0; i < kept.size(); ++i) {
    pool_->raise_used(*kept[i], static_cast<int32_t>(tree_.piece(tokens, first + i).size()));
  }
  if (unfinished != nullptr) {
    unfinished->tokens.swap(longer);
    release(std::exchange(unfinished->block, kept.front()));
  }
  tree_.hold(parent);
  Node* last = &parent;
  for (size_t i = 0; i < added; ++i) {
    if (tree_.size() == tree_.max_blocks()) evict(*tree_.oldest());
    last = &tree_.add(*last, std::move(chain[i]));
    last->block = kept[replaced + i];
  }
  const bool all = first + replaced + added == pieces;
  if (all && after != nullptr) {
    if (passed != nullptr) drop_snapshot(*passed);
    if (last->snapshot == nullptr) keep(*last, std::move(after), terms, std::move(use));
  }
  tree_.release(*last);
  size_.store(tree_.size(), std::memory_order_relaxed);
  return {};
}

PrefixHit PrefixCache::match(uint64_t domain, Tokens tokens, bool with_state) {
  PrefixHit hit;
  hit.pool_ = pool_;
  const std::lock_guard lock(mutex_);
  std::vector<Block*> blocks;
  Node* last = &tree_.root();
  size_t with_snapshot = 0;  // number of blocks
  Node* found = nullptr;     // that has the snapshot
  for (size_t i = 0; i < tree_.pieces(tokens.size()); ++i) {
    const Tokens piece = tree_.piece(tokens, i);
    const BlockTree::Near near = tree_.nearest(*last, key(*last, domain), piece);
    if (near.node == nullptr) break;
    last = near.node;
    blocks.push_back(last->block);
    hit.tokens_ += near.common;
    if (near.common < tree_.block_size()) break;
    if (with_state && last->snapshot != nullptr) {
      with_snapshot = blocks.size();
      hit.snapshot_ = last->snapshot;
      found = last;
    }
  }
  hit.known_ = hit.tokens_;
  if (with_state) {
    blocks.resize(with_snapshot);
    hit.tokens_ = with_snapshot * tree_.block_size();
    if (found != nullptr) use_snapshot(*found);
  }
  const Status retained = pool_->retain(blocks);
  GEN_ASSERT(retained.ok());
  hit.blocks_ = std::move(blocks);
  tree_.touch(*last);
  return hit;
}

size_t PrefixCache::spare() const noexcept {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const Node* node = tree_.oldest(); node != nullptr; node = BlockTree::newer(*node)) {
    if (node->block->references() == 1) ++count;
  }
  return count;
}

// Evicts leaf blocks that no one else holds first. If these are not enough, shared ones follow, so
// that the blocks above them can be evicted.
size_t PrefixCache::give_up(size_t wanted) noexcept {
  const std::lock_guard lock(mutex_);
  size_t given = 0;
  for (const bool all : {false, true}) {
    Node* node = tree_.oldest();
    while (node != nullptr && given < wanted) {
      Node* const next = BlockTree::newer(*node);
      const bool spare = node->block->references() == 1;
      if ((all || spare) && BlockTree::children(*node).empty()) {
        evict(*node);
        if (spare) ++given;
      }
      node = next;
    }
  }
  return given;
}

}  // namespace gen::cache
