// SPDX-License-Identifier: Apache-2.0
// Keys and values of prefixes, kept for later texts with a common prefix: a tree of token sequences
// over the blocks of a pool. It shares the blocks by reference with the caches that wrote them and
// those that continue them. Nothing is copied; a cache that continues within a block copies that
// block when it first writes (paged_cache.h, paged_store.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/prefix/block_pool.h"
#include "cache/prefix/block_tree.h"
#include "cache/state_snapshot.h"

namespace gen::cache {

/// Blocks of a cached prefix, with one reference to each.
class PrefixHit {
 public:
  PrefixHit() = default;
  PrefixHit(PrefixHit&& other) noexcept = default;
  PrefixHit& operator=(PrefixHit&&) = delete;
  ~PrefixHit();

  /// Cached positions. Block i has those from i * block_size on; later positions of the last block
  /// belong to another text. With bins, blocks come as SharesBlocks::blocks() has them, only those
  /// that a row after these positions sees.
  [[nodiscard]] size_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::span<Block* const> blocks() const noexcept { return blocks_; }
  /// Passes the references to the caller.
  void taken() noexcept { blocks_.clear(); }
  /// The sequence's state after tokens(), if it was requested; null if there are no tokens.
  [[nodiscard]] const std::shared_ptr<const StateSnapshot>& snapshot() const noexcept {
    return snapshot_;
  }
  /// Positions that have blocks; more than tokens() where they have no snapshot, or lack blocks of
  /// layers with windows.
  [[nodiscard]] size_t known() const noexcept { return known_; }

 private:
  friend class PrefixCache;
  std::shared_ptr<BlockPool> pool_;
  std::vector<Block*> blocks_;
  std::shared_ptr<const StateSnapshot> snapshot_;
  size_t tokens_ = 0;
  size_t known_ = 0;
};

/// What is to become of a snapshot in a prefix cache.
struct SnapshotTerms {
  /// Bytes of all snapshots of the cache. Those that exceed it go, what was used longest ago first.
  size_t budget = std::numeric_limits<size_t>::max();
  /// One that its text passes, to be replaced by a later one of it: unless another text has used it
  /// meanwhile, it goes when that comes, which names its position.
  bool passes = false;
  size_t instead_of = 0;  // 0: of none
};

/// At most `capacity` blocks, each with one reference; a block that nobody else holds is returned
/// when the pool has no other left. The least recently used are evicted first, from the ends of
/// texts. Sequences of different domains share nothing: a domain is everything besides tokens that
/// keys and values depend on, such as model, adapter and format. Threads: any, at the same time.
/// Its lock is taken before the pool's.
class PrefixCache final : public BlockSaver {
 public:
  using Tokens = std::span<const int32_t>;

  /// kInvalidArgument for a capacity below 1. `reaches` are those of the bins that blocks have
  /// (CachePool::reaches): then the cache keeps at most `capacity` stretches of block_size()
  /// positions, each with a block of each bin that is there.
  static Result<std::shared_ptr<PrefixCache>> create(std::shared_ptr<BlockPool> pool,
                                                     int32_t capacity,
                                                     std::vector<int32_t> reaches = {-1});
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  ~PrefixCache();

  /// A unique number for a name, the same each time.
  uint64_t domain(std::string_view name);

  /// Keeps the blocks of `tokens`, in order; they must be committed and never written again. Blocks
  /// of bins with windows may be null; those that a known stretch lacks are added to it. Known
  /// blocks are kept and count as used; nothing happens without tokens or blocks. If there is no
  /// room, less recently used blocks are evicted, and blocks that still do not fit are not kept. A
  /// snapshot of the state after all of the tokens, which then fill their blocks, is kept with the
  /// last block on its terms, and evicted with it; its memory must outlive the cache. Of one place
  /// the first is kept. Changes nothing on failure:
  /// kInvalidArgument for too few blocks, for a block with fewer written positions, and for a
  /// snapshot within a block; kState for a block that is not an allocated one of the pool.
  Status insert(uint64_t domain, Tokens tokens, std::span<Block* const> blocks,
                std::shared_ptr<const StateSnapshot> after = nullptr, SnapshotTerms terms = {});
  /// The longest cached prefix of `tokens`, to a token, of which what the next row sees is there;
  /// for a sequence with a state, the longest one with a snapshot at its end.
  PrefixHit match(uint64_t domain, Tokens tokens, bool with_state = false);

  /// Releases all blocks; they do not count as evicted.
  void clear() noexcept;

  /// The blocks of each stretch of block_size() positions.
  [[nodiscard]] size_t bins() const noexcept { return reaches_.size(); }
  /// Stretches of positions held: blocks, if there is one bin. Any thread.
  [[nodiscard]] int32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] size_t max_size() const noexcept { return static_cast<size_t>(tree_.max_blocks()); }
  /// Blocks evicted so far; any thread.
  [[nodiscard]] uint64_t evicted() const noexcept {
    return evicted_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const BlockPool& pool() const noexcept { return *pool_; }

  [[nodiscard]] size_t spare() const noexcept override;
  size_t give_up(size_t wanted) noexcept override;

 private:
  using Node = BlockTree::Node;

  PrefixCache(std::shared_ptr<BlockPool> pool, int32_t capacity,
              std::vector<int32_t> reaches) noexcept
      : pool_(std::move(pool)),
        reaches_(std::move(reaches)),
        tree_(pool_->block_size(), capacity) {}
  /// Roots of domains are told apart by the keys of their children.
  [[nodiscard]] uint64_t key(const Node& parent, uint64_t domain) noexcept {
    return &parent == &tree_.root() ? domain : 0;
  }
  [[nodiscard]] Status check_written(const Block& block, size_t tokens) const;
  void release(Block* block) noexcept;
  /// The first stretch of a bin that the row after `tokens` positions sees.
  [[nodiscard]] size_t first_seen(size_t bin, size_t tokens) const noexcept;
  /// Marks a path as used now, the blocks of windows among its last `seen` stretches, too.
  void note_use(Node& last, size_t seen) noexcept;
  [[nodiscard]] size_t spare_of(const Node& node, bool windows_only) const noexcept;
  size_t drop_windows(Node& node) noexcept;
  /// Drops blocks of windows that were last seen before a time.
  size_t give_up_windows(size_t wanted, uint64_t before) noexcept;
  using Uses = std::map<uint64_t, Node*>;
  void keep(Node& node, std::shared_ptr<const StateSnapshot> snapshot, const SnapshotTerms& terms,
            Uses::node_type use) noexcept;
  void use_snapshot(Node& node) noexcept;
  void drop_snapshot(Node& node) noexcept;
  void drop(Node& node) noexcept;
  void evict(Node& node) noexcept;

  const std::shared_ptr<BlockPool> pool_;
  const std::vector<int32_t> reaches_;  // by bin
  mutable std::mutex mutex_;
  BlockTree tree_;
  std::map<std::string, uint64_t, std::less<>> domains_;
  Uses snapshots_;  // by when they were last used
  uint64_t uses_ = 0;
  size_t snapshot_bytes_ = 0;
  std::atomic<int32_t> size_ = 0;
  std::atomic<uint64_t> evicted_ = 0;
};

}  // namespace gen::cache
