// SPDX-License-Identifier: Apache-2.0
// Keys and values of prefixes, kept for later texts with a common prefix: a tree of token sequences
// over the blocks of a pool. It shares the blocks by reference with the caches that wrote them and
// those that continue them. Nothing is copied; a cache that continues within a block copies that
// block when it first writes (paged_cache.h, paged_store.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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

  /// Positions that are held. Block i has those from i * block_size on; what lies in the last block
  /// behind them is another text's.
  [[nodiscard]] size_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::span<Block* const> blocks() const noexcept { return blocks_; }
  /// The references are somebody else's now.
  void taken() noexcept { blocks_.clear(); }
  /// What the state of a sequence was after tokens(), where that was asked for; null if they are
  /// none.
  [[nodiscard]] const std::shared_ptr<const StateSnapshot>& snapshot() const noexcept {
    return snapshot_;
  }
  /// Positions of which there are blocks; more than tokens() where they have no snapshot.
  [[nodiscard]] size_t known() const noexcept { return known_; }

 private:
  friend class PrefixCache;
  std::shared_ptr<BlockPool> pool_;
  std::vector<Block*> blocks_;
  std::shared_ptr<const StateSnapshot> snapshot_;
  size_t tokens_ = 0;
  size_t known_ = 0;
};

/// At most `capacity` blocks, each with one reference; one that is held by nobody else is given
/// back when the pool has no other left. The least recently used go first, from the ends of texts.
/// Sequences of different domains have nothing in common: a domain is whatever keys and values
/// depend on beside tokens, as model, adapter and format.
/// Threads: any, at the same time. Its lock is taken before the pool's.
class PrefixCache final : public BlockSaver {
 public:
  using Tokens = std::span<const int32_t>;

  /// kInvalidArgument for a capacity below 1.
  static Result<std::shared_ptr<PrefixCache>> create(std::shared_ptr<BlockPool> pool,
                                                     int32_t capacity);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  ~PrefixCache();

  /// A number for a name, the same each time, of no other name.
  uint64_t domain(std::string_view name);

  /// Keeps the blocks that hold `tokens`, in order; they must be committed and not written any
  /// more. What is known stays as it is and counts as used; nothing happens without tokens or
  /// blocks. Where there is no room less recently used blocks go, and what does not fit even then
  /// is not kept. A snapshot of the state after all of the tokens, which then fill their blocks,
  /// is kept beside the last of these, and goes with it; what it lies in must outlive the cache.
  /// Changes nothing on failure: kInvalidArgument for too few blocks, for one of which fewer
  /// positions are written, and for a snapshot within a block; kState for one that is not an
  /// allocated one of the pool.
  Status insert(uint64_t domain, Tokens tokens, std::span<Block* const> blocks,
                std::shared_ptr<const StateSnapshot> after = nullptr);
  /// The longest beginning of `tokens` that is kept, to a token; for a sequence with a state the
  /// longest at whose end there is a snapshot.
  PrefixHit match(uint64_t domain, Tokens tokens, bool with_state = false);

  /// Lets all blocks go; those do not count as evicted.
  void clear() noexcept;

  /// Blocks held; any thread.
  [[nodiscard]] int32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  /// Blocks that had to go so far, any thread.
  [[nodiscard]] uint64_t evicted() const noexcept {
    return evicted_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const BlockPool& pool() const noexcept { return *pool_; }

  [[nodiscard]] size_t spare() const noexcept override;
  size_t give_up(size_t wanted) noexcept override;

 private:
  using Node = BlockTree::Node;

  PrefixCache(std::shared_ptr<BlockPool> pool, int32_t capacity) noexcept
      : pool_(std::move(pool)), tree_(pool_->block_size(), capacity) {}
  /// Roots of domains are told apart by the keys of their children.
  [[nodiscard]] uint64_t key(const Node& parent, uint64_t domain) noexcept {
    return &parent == &tree_.root() ? domain : 0;
  }
  [[nodiscard]] Status check_written(const Block& block, size_t tokens) const;
  void release(Block* block) noexcept;
  void drop(Node& node) noexcept;
  void evict(Node& node) noexcept;

  const std::shared_ptr<BlockPool> pool_;
  mutable std::mutex mutex_;
  BlockTree tree_;
  std::map<std::string, uint64_t, std::less<>> domains_;
  std::atomic<int32_t> size_ = 0;
  std::atomic<uint64_t> evicted_ = 0;
};

}  // namespace gen::cache
