// SPDX-License-Identifier: Apache-2.0
// The interface of every cache: ONE sequence, grown by plan / tables / commit and cut by truncate.
// A step calls plan(n) and tells the engine where the entries lie (tables()), whose operations
// write the new rows and read the rest; who owns the sequence commits what it keeps of them when
// the step has run. Dropping the plan instead leaves the cache as it was. A new variant is one file
// implementing this that passes the conformance test; a new format is one of cache_format.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/kept.h"
#include "cache/layer_shape.h"
#include "cache/memory_use.h"
#include "engine/kv_layer.h"
#include "engine/memory.h"

namespace gen::cache {

class Block;
class StateReader;
class StateWriter;

/// What a variant can do, as data.
struct CacheTraits {
  const char* kind = "";              // "fp32", "fp8/q4", …; static text
  const char* layout = "contiguous";  // "paged", "tiered", …, for messages; static text
  bool can_truncate = true;
  bool cuts_exactly = true;        // truncate(n) of more than n positions leaves n
  bool pooled = false;             // what it lacks others may hold, and a cut gives its own to them
  bool lossy = false;              // stored values differ from those written
  bool keeps_paths = false;        // commit() takes rows that are not the first of a plan
  bool one_row_one_result = true;  // false: exempt, results may depend on how rows came
  size_t bytes_per_entry = 0;      // over all layers
};

/// A reservation of entries [start, start + count); valid until the cache next changes. `start` is
/// length() unless a cache keeps fewer entries than positions, as windows and pooled chunks do.
struct CachePlan {
  int32_t start = 0;
  int32_t count = 0;
};

/// Only among so many first rows of a plan there may be some that are left out before one that is
/// kept.
constexpr int32_t kMaxTreeRows = 64;

/// The positions that an entry covers.
struct EntryPositions {
  int32_t first = 0;
  int32_t count = 1;
};

/// What a cache has that keeps its entries in blocks of a pool (cache/prefix/block_pool.h).
class SharesBlocks {
 public:
  /// The blocks that hold the committed entries, in order, until the cache next changes.
  [[nodiscard]] virtual std::span<Block* const> blocks() const noexcept = 0;
  /// Goes on from these blocks instead of its own, which held the same as far as they went: they
  /// hold `positions` entries, more than length(), and one reference to each passes to the cache.
  /// Changes nothing on failure: kInvalidArgument for another number of blocks than that takes, or
  /// entries without room; kState for blocks of another pool.
  virtual Status adopt(std::span<Block* const> blocks, int32_t positions) = 0;

 protected:
  ~SharesBlocks() = default;
};

/// What a cache has whose entries can go to other positions.
class Shifts {
 public:
  /// Drops the committed positions [first, first + n); those behind move down by n, their keys
  /// turned to where they now are. A key is decoded, turned in double precision and encoded once
  /// more; values stay bit for bit. kInvalidArgument for positions that are not held; then, and
  /// when it throws, nothing has changed.
  virtual Status shift(int32_t first, int32_t n) = 0;

 protected:
  ~Shifts() = default;
};

/// Threads: not synchronised; the leader of the current step is the only writer.
class KvCache {
 public:
  virtual ~KvCache() = default;

  [[nodiscard]] virtual const CacheTraits& traits() const noexcept = 0;
  [[nodiscard]] virtual std::span<const LayerShape> layers() const noexcept = 0;
  /// Committed positions.
  [[nodiscard]] virtual int32_t length() const noexcept = 0;
  /// Committed entries that attention reads, in each layer: length(), unless some stand for several
  /// positions. Any thread.
  [[nodiscard]] virtual int32_t entries() const noexcept { return length(); }
  /// Of a committed entry.
  [[nodiscard]] virtual EntryPositions positions_of(int32_t entry) const noexcept {
    return {entry, 1};
  }
  /// Most entries it can ever hold.
  [[nodiscard]] virtual int32_t capacity() const noexcept = 0;

  /// Most entries that may come in one plan now, at least 1: where a cache changes what it holds at
  /// certain lengths, no plan may reach over one of them, so that it shows in no result how rows
  /// came.
  [[nodiscard]] virtual int32_t plan_limit() const noexcept {
    return std::numeric_limits<int32_t>::max();
  }
  /// Entries that may still come if nobody else takes room meanwhile, over as many plans as
  /// plan_limit() makes of them. Any thread that may plan.
  [[nodiscard]] virtual int32_t room() const noexcept { return capacity() - length(); }
  /// Room for `n` more entries, or kCacheFull / kOutOfMemory, and kPoolExhausted where
  /// traits().pooled and others hold what is missing; nothing observable changes. plan(0) is for
  /// reading.
  [[nodiscard]] virtual Result<CachePlan> plan(int32_t n) = 0;
  /// How the layers lie in blocks; constant.
  [[nodiscard]] virtual std::span<const engine::KvLayer> kv_layers() const noexcept = 0;
  /// Block tables that layers have: KvLayer::part is below. Constant.
  [[nodiscard]] virtual int32_t parts() const noexcept { return 1; }
  /// The memory that a part's blocks lie in; outlives the cache. Constant.
  [[nodiscard]] virtual engine::EngineMemory& engine_memory(int32_t part) const noexcept = 0;
  /// Where a part's entries lie, those of the plan included; valid until the cache next changes.
  /// What a layer's operations read may have to be brought there first, see stage(). kOutOfMemory.
  [[nodiscard]] virtual Result<engine::KvTables> tables(int32_t part, const CachePlan& plan) = 0;
  /// Brings what the plan's rows see of a layer to where tables() says, once all operations of
  /// earlier layers have ended; layers come in ascending order. kIo and the like; the step may then
  /// be made again.
  virtual Status stage(int32_t /*layer*/, const CachePlan& /*plan*/) { return {}; }
  /// Whether stage() has anything to do for a plan.
  [[nodiscard]] virtual bool stages(const CachePlan& /*plan*/) const noexcept { return false; }
  /// Makes rows of the plan real; the others are as if they had never come. `rows` only where
  /// traits().keeps_paths, and unless they are the first ones below kMaxTreeRows. What must move
  /// is noted, and moved when the next plan is made; so plan(0) comes before reading, and blocks()
  /// has none of it before.
  virtual void commit(const CachePlan& plan, Kept kept) noexcept = 0;
  void commit(const CachePlan& plan) noexcept { commit(plan, {plan.count}); }
  /// Keeps the first max(n, 0) positions, or fewer where traits().cuts_exactly is not set; does
  /// nothing when that is all of them. kUnsupported, and nothing changed, where they are no longer
  /// held; kOutOfMemory where what is kept must be moved.
  virtual Status truncate(int32_t n) = 0;
  [[nodiscard]] virtual MemoryUse memory() const noexcept = 0;
  /// The most that memory().resident becomes on the way to a full cache, where that is not what a
  /// full one has.
  [[nodiscard]] virtual size_t max_resident() const noexcept { return memory().resident; }
  /// The part of max_resident() that is not in the host's memory.
  [[nodiscard]] virtual size_t max_on_device() const noexcept {
    return engine_memory(0).in_host() ? 0 : max_resident();
  }
  /// A sequence of its own with the same content, in the same memory; paged and tiered caches and
  /// lanes share what is committed until one of the two writes. kOutOfMemory, and what plan() says.
  [[nodiscard]] virtual Result<std::unique_ptr<KvCache>> fork() = 0;

  /// Null where there are no blocks to share.
  [[nodiscard]] virtual SharesBlocks* sharing() noexcept { return nullptr; }
  /// Null where entries stay at their positions.
  [[nodiscard]] virtual Shifts* shifting() noexcept { return nullptr; }

  /// Writes what the cache holds, cache_state.h. A cache that keeps an entry for each position and
  /// nothing else has these; any other brings its own.
  virtual Status save(StateWriter& to);
  /// Reads the rest of a state into an empty cache, which is empty again on failure.
  virtual Status restore(StateReader& from);
};

}  // namespace gen::cache
