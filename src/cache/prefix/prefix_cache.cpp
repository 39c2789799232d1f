// SPDX-License-Identifier: Apache-2.0
// See prefix_cache.h. The tokens of one child of a node are never a prefix of another's: an
// incomplete last block is replaced by one that continues it, and not added if such a block exists.
#include "cache/prefix/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "cache/window_start.h"

namespace gen::cache {

PrefixHit::~PrefixHit() {
  for (Block* block : blocks_) {
    if (block == nullptr) continue;
    const Status released = pool_->release(block);
    GEN_ASSERT(released.ok());
  }
}

Result<std::shared_ptr<PrefixCache>> PrefixCache::create(std::shared_ptr<BlockPool> pool,
                                                         int32_t capacity,
                                                         std::vector<int32_t> reaches) {
  GEN_ASSERT(!reaches.empty());
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "a prefix cache of %d blocks: at least 1", capacity);
  }
  std::shared_ptr<PrefixCache> made(new PrefixCache(std::move(pool), capacity, std::move(reaches)));
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
  for (Block*& block : node.blocks) {
    if (block != nullptr) release(std::exchange(block, nullptr));
  }
  tree_.remove(node);
  size_.store(tree_.size(), std::memory_order_relaxed);
}

size_t PrefixCache::first_seen(size_t bin, size_t tokens) const noexcept {
  if (reaches_[bin] < 0) return 0;
  const int32_t first = window_start(static_cast<int32_t>(tokens), reaches_[bin]);
  return static_cast<size_t>(first) / tree_.block_size();
}

void PrefixCache::note_use(Node& last, size_t seen) noexcept {
  tree_.touch(last);
  if (bins() == 1) return;
  ++uses_;
  for (Node* node = &last; node != &tree_.root(); node = BlockTree::parent(*node)) {
    node->used = uses_;
    if (seen == 0) continue;
    node->window_used = uses_;
    --seen;
  }
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
  if (blocks.size() < pieces * bins()) {
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
  std::vector<Block**> gaps;   // of known stretches
  std::vector<Block*> kept;    // what fills these, and then the other blocks that are kept
  for (; first < pieces; ++first) {
    const Tokens piece = tree_.piece(tokens, first);
    const BlockTree::Near near = tree_.nearest(*known, key(*known, domain), piece);
    if (near.common == piece.size()) {
      known = near.node;
      const bool replaced = (first + 1) * tree_.block_size() == terms.instead_of;
      if (replaced && after != nullptr && known->snapshot_passes) passed = known;
      for (size_t bin = 0; bin < bins(); ++bin) {
        Block* const own = blocks[first * bins() + bin];
        if (known->blocks[bin] != nullptr || own == nullptr) continue;
        if (own->used() < static_cast<int32_t>(known->tokens.size())) continue;
        gaps.push_back(&known->blocks[bin]);
        kept.push_back(own);
      }
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
  for (const auto& node : chain) node->blocks.resize(bins());
  const auto fits = blocks.subspan(first * bins(), (replaced + added) * bins());
  for (size_t i = 0; i < fits.size(); ++i) {
    if (fits[i] != nullptr || reaches_[i % bins()] < 0) kept.push_back(fits[i]);
  }
  GEN_TRY(pool_->retain(kept));
  for (size_t i = 0; i < fits.size(); ++i) {
    if (fits[i] == nullptr) continue;
    const size_t covered = tree_.piece(tokens, first + i / bins()).size();
    if (Status written = check_written(*fits[i], covered); !written.ok()) {
      for (Block* block : kept) release(block);
      return written;
    }
  }

  // Nothing below can fail.
  for (size_t i = 0; i < gaps.size(); ++i) *gaps[i] = kept[i];
  for (size_t i = 0; i < fits.size(); ++i) {
    const size_t covered = tree_.piece(tokens, first + i / bins()).size();
    if (fits[i] != nullptr) pool_->raise_used(*fits[i], static_cast<int32_t>(covered));
  }
  if (unfinished != nullptr) {
    unfinished->tokens.swap(longer);
    for (size_t bin = 0; bin < bins(); ++bin) {
      Block* const old = std::exchange(unfinished->blocks[bin], fits[bin]);
      if (old != nullptr) release(old);
    }
  }
  tree_.hold(parent);
  Node* last = &parent;
  for (size_t i = 0; i < added; ++i) {
    if (tree_.size() == tree_.max_blocks()) evict(*tree_.oldest());
    last = &tree_.add(*last, std::move(chain[i]));
    std::copy_n(fits.begin() + static_cast<std::ptrdiff_t>((replaced + i) * bins()), bins(),
                last->blocks.begin());
  }
  const bool all = first + replaced + added == pieces;
  if (all && after != nullptr) {
    if (passed != nullptr) drop_snapshot(*passed);
    if (last->snapshot == nullptr) keep(*last, std::move(after), terms, std::move(use));
  }
  tree_.release(*last);
  size_t seen_from = pieces;
  for (size_t bin = 0; bin < bins(); ++bin) {
    if (reaches_[bin] >= 0) seen_from = std::min(seen_from, first_seen(bin, tokens.size()));
  }
  if (all && last != &tree_.root()) note_use(*last, pieces - seen_from);
  size_.store(tree_.size(), std::memory_order_relaxed);
  return {};
}

PrefixHit PrefixCache::match(uint64_t domain, Tokens tokens, bool with_state) {
  PrefixHit hit;
  hit.pool_ = pool_;
  const std::lock_guard lock(mutex_);
  std::vector<Node*> path;
  std::vector<size_t> run_from(
      bins());      // by bin: the first of the last stretches that have a block
  size_t best = 0;  // stretches of the longest prefix that can be continued
  for (size_t i = 0; i < tree_.pieces(tokens.size()); ++i) {
    const Tokens piece = tree_.piece(tokens, i);
    const Node& parent = path.empty() ? tree_.root() : *path.back();
    const BlockTree::Near near = tree_.nearest(parent, key(parent, domain), piece);
    if (near.node == nullptr) break;
    path.push_back(near.node);
    hit.known_ += near.common;
    bool seen = true;
    for (size_t bin = 0; bin < bins(); ++bin) {
      if (near.node->blocks[bin] == nullptr) run_from[bin] = path.size();
      seen = seen && run_from[bin] <= first_seen(bin, hit.known_);
    }
    const bool full = near.common == tree_.block_size();
    if (seen && (!with_state || (full && near.node->snapshot != nullptr))) {
      best = path.size();
      hit.tokens_ = hit.known_;
    }
    if (!full) break;
  }
  std::vector<Block*> blocks(best * bins());
  std::vector<Block*> taken;
  size_t seen_from = best;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t bin = i % bins();
    if (i / bins() < first_seen(bin, hit.tokens_)) continue;
    if (reaches_[bin] >= 0) seen_from = std::min(seen_from, i / bins());
    blocks[i] = path[i / bins()]->blocks[bin];
    taken.push_back(blocks[i]);
  }
  if (with_state && best > 0) {
    hit.snapshot_ = path[best - 1]->snapshot;
    use_snapshot(*path[best - 1]);
  }
  const Status retained = pool_->retain(taken);
  GEN_ASSERT(retained.ok());
  hit.blocks_ = std::move(blocks);
  if (path.empty()) return hit;
  if (best > 0) note_use(*path[best - 1], best - seen_from);
  if (best < path.size()) note_use(*path.back(), 0);
  return hit;
}

size_t PrefixCache::spare_of(const Node& node, bool windows_only) const noexcept {
  size_t count = 0;
  for (size_t bin = 0; bin < bins(); ++bin) {
    const Block* const block = node.blocks[bin];
    if (block == nullptr || (windows_only && reaches_[bin] < 0)) continue;
    if (block->references() == 1) ++count;
  }
  return count;
}

size_t PrefixCache::drop_windows(Node& node) noexcept {
  const size_t given = spare_of(node, true);
  for (size_t bin = 0; bin < bins(); ++bin) {
    Block*& block = node.blocks[bin];
    if (reaches_[bin] < 0 || block == nullptr || block->references() > 1) continue;
    release(std::exchange(block, nullptr));
  }
  return given;
}

size_t PrefixCache::spare() const noexcept {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const Node* node = tree_.oldest(); node != nullptr; node = BlockTree::newer(*node)) {
    count += spare_of(*node, false);
  }
  return count;
}

// Blocks of windows go first where no text has ended within their reach since the oldest text was
// used: the middle of a long text needs none. Then leaf blocks that no one else holds are evicted.
// If these are not enough, shared ones follow, so that the blocks above them can be evicted.
size_t PrefixCache::give_up(size_t wanted) noexcept {
  const std::lock_guard lock(mutex_);
  size_t given = 0;
  for (const bool all : {false, true}) {
    Node* node = tree_.oldest();
    while (node != nullptr && given < wanted) {
      Node* const next = BlockTree::newer(*node);
      const size_t spare = spare_of(*node, false);
      if ((all || spare > 0) && BlockTree::children(*node).empty()) {
        given += give_up_windows(wanted - given, node->used);
        if (given >= wanted) break;
        given += spare_of(*node, false);
        evict(*node);
      }
      node = next;
    }
  }
  return given;
}

size_t PrefixCache::give_up_windows(size_t wanted, uint64_t before) noexcept {
  if (bins() == 1) return 0;
  size_t given = 0;
  while (given < wanted) {
    Node* oldest = nullptr;
    for (Node* node = tree_.oldest(); node != nullptr; node = BlockTree::newer(*node)) {
      if (node->window_used >= before || spare_of(*node, true) == 0) continue;
      if (oldest == nullptr || node->window_used < oldest->window_used) oldest = node;
    }
    if (oldest == nullptr) break;
    given += drop_windows(*oldest);
  }
  return given;
}

}  // namespace gen::cache
