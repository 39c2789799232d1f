// SPDX-License-Identifier: Apache-2.0
// An index from token sequences to block ids, for programs that keep the blocks themselves: which
// blocks hold the prefix of a prompt, and which one to evict next. It holds no keys or values;
// prefix_cache.h does that for the blocks of a pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/callbacks.h"
#include "base/status.h"
#include "cache/prefix/block_tree.h"

namespace gen::cache {

/// FNV-1a of 64 bits over the tokens, each as the 8 bytes of a sign-extended integer, lowest first.
uint64_t block_hash(std::span<const int32_t> tokens) noexcept;

/// Sequences are cut into blocks of block_size tokens; what remains is a block of its own, which
/// only a sequence that ends with it matches. Blocks are found by hash and compared by token.
/// Any failing call leaves the index as it was.
/// Threads: any, at the same time.
class RadixCache {
 public:
  using Tokens = std::span<const int32_t>;
  using Hash = uint64_t (*)(Tokens tokens) noexcept;
  /// Called for each id that has become free, before it can be reused, on the thread whose call
  /// frees it. Calls on the index within it are kBusy; exceptions are dropped.
  using OnFree = void (*)(void* user, int32_t id);

  /// Output for ids: one for each block, from the first token on.
  struct Ids {
    int32_t* to = nullptr;  // [capacity], or null: ids are not needed
    size_t capacity = 0;
    size_t count = 0;  // out; with kOutOfRange the number needed
  };
  struct Stats {
    uint64_t hits = 0;  // matches of at least one block
    uint64_t misses = 0;
    uint64_t evictions = 0;
  };

  /// kInvalidArgument unless both are at least 1. `hash` is for tests.
  static Result<std::unique_ptr<RadixCache>> create(int32_t block_size, int32_t max_blocks,
                                                    Hash hash = block_hash);

  /// Adds the missing blocks of a sequence. If there is no room, the least recently used leaves are
  /// evicted, but no pinned ones and none of this sequence: the sequence is then added as far as it
  /// fits, and ids tell how far. kOutOfRange if the ids do not fit.
  Status insert(Tokens tokens, Ids* ids);
  /// The longest indexed prefix of `tokens`, in whole blocks. kOutOfRange as insert().
  Status match(Tokens tokens, size_t* matched, Ids* ids) {
    return look_up(tokens, false, matched, ids);
  }
  /// The same, and pins it until it is unpinned as often; not counted as a match.
  Status pin(Tokens tokens, size_t* matched, Ids* ids) {
    return look_up(tokens, true, matched, ids);
  }
  /// `tokens` are those that pin() matched; kState unless they are there and pinned.
  Status unpin(Tokens tokens);
  /// Removes the least recently used leaf that is not pinned; -1 if there is none.
  Status evict(int32_t* id);
  /// Removes the blocks of all sequences with the prefix `tokens`, but not those before the block
  /// of its last token. kBusy if one is pinned.
  Status remove(Tokens tokens, size_t* removed);

  /// The number of blocks; any thread, also in callbacks.
  [[nodiscard]] int32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  Status stats(Stats* out) const;
  /// Of on_free.
  [[nodiscard]] const std::shared_ptr<Callbacks>& callbacks() const noexcept { return callbacks_; }
  /// null for none.
  Status set_on_free(OnFree call, void* user);
  [[nodiscard]] size_t block_size() const noexcept { return tree_.block_size(); }

 private:
  using Node = BlockTree::Node;
  /// The mutex, unless this thread is in the callback.
  class Entry;
  /// The deepest node of a sequence that is there, and how many blocks and tokens lead to it.
  struct Walk {
    Node* last;
    size_t blocks = 0;
    size_t tokens = 0;
  };

  RadixCache(int32_t block_size, int32_t max_blocks, Hash hash)
      : tree_(block_size, max_blocks), hash_(hash) {}
  Status look_up(Tokens tokens, bool pins, size_t* matched, Ids* ids);
  Walk walk(Tokens tokens) noexcept;
  static Status check_room(Ids* ids, size_t count);
  /// Writes the ids of `count` nodes that end with `last`.
  static void tell(const Node& last, size_t count, Ids* ids) noexcept;
  /// A node without children; or it and all below it, and how many these were.
  void drop(Node& node) noexcept;
  size_t drop_from(Node& top) noexcept;

  mutable std::mutex mutex_;
  BlockTree tree_;
  const Hash hash_;
  Stats stats_;
  OnFree on_free_ = nullptr;
  void* user_ = nullptr;
  const std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>();
  std::atomic<int32_t> size_ = 0;
};

}  // namespace gen::cache
