// SPDX-License-Identifier: Apache-2.0
// The interface of every cache: ONE sequence, grown by plan / tables / commit and cut by truncate.
// A step calls plan(n) and tells the engine where the entries are (tables()); the engine's
// operations write the new rows and read the rest. After the step the owner of the sequence commits
// the rows it keeps. Dropping the plan instead leaves the cache unchanged. A new variant is one
// file that implements this and passes the conformance test; a new format is one of cache_format.h.
#pragma once

#include <algorithm>
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
#include "cache/snapshot_place.h"
#include "cache/window_start.h"
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
  bool cuts_exactly = true;        // truncate(n) of more than n positions leaves exactly n
  bool pooled = false;             // others may hold its missing entries, and a cut returns its own
  bool lossy = false;              // stored values differ from those written
  bool has_means = false;          // an entry may be the mean of several positions
  bool keeps_paths = false;        // commit() accepts rows other than the first of a plan
  bool one_row_one_result = true;  // false: exempt, results may depend on how rows are split
  size_t bytes_per_entry = 0;      // over all layers
};

/// A reservation of entries [start, start + count); valid until the next change of the cache.
/// `start` is length() unless a cache keeps fewer entries than positions, as windows and pooled
/// chunks do.
struct CachePlan {
  int32_t start = 0;
  int32_t count = 0;
};

/// Only among this many first rows of a plan may a commit skip a row and keep a later one.
constexpr int32_t kMaxTreeRows = 64;

/// The positions that an entry covers.
struct EntryPositions {
  int32_t first = 0;
  int32_t count = 1;
};

/// The interface of a cache that keeps its entries in blocks of a pool (cache/prefix/block_pool.h).
class SharesBlocks {
 public:
  /// The blocks of the committed entries, in order, until the next change of the cache: for each
  /// stretch of positions those of all bins (CachePool), null where no row will see a bin's layers.
  [[nodiscard]] virtual std::span<Block* const> blocks() const noexcept = 0;
  /// Replaces its blocks with these, which have the same content as far as its own reach: they hold
  /// `positions` entries, more than length(), and one reference to each passes to the cache.
  /// Changes nothing on failure: kInvalidArgument for a wrong number of blocks, or entries without
  /// room; kState for blocks of another pool.
  virtual Status adopt(std::span<Block* const> blocks, int32_t positions) = 0;
  /// Whether the next row is written to a block that others hold, so that it needs one more.
  [[nodiscard]] virtual bool copies_next() const noexcept = 0;
  /// Forgets what remember() was told: its blocks may have other content than those adopted.
  virtual void forget_points() noexcept = 0;

 protected:
  ~SharesBlocks() = default;
};

/// The interface of a cache whose entries can move to other positions.
class Shifts {
 public:
  /// Drops the committed positions [first, first + n); those after them move down by n, and their
  /// keys are rotated accordingly. A key is decoded, rotated in double precision and encoded once
  /// more; values are kept bit for bit. kInvalidArgument for positions that are not held,
  /// kUnsupported where the next row would see entries that a window let go; then, and when it
  /// throws, nothing has changed, but a sequence in several caches may have lost positions from
  /// `first` on.
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
  /// Committed entries that attention reads, in each layer: length(), unless some cover several
  /// positions. Any thread.
  [[nodiscard]] virtual int32_t entries() const noexcept { return length(); }
  /// Of a committed entry.
  [[nodiscard]] virtual EntryPositions positions_of(int32_t entry) const noexcept {
    return {entry, 1};
  }
  /// The maximum number of entries it can ever hold.
  [[nodiscard]] virtual int32_t capacity() const noexcept = 0;

  /// The maximum number of entries of one plan now, at least 1. Where a cache changes its entries
  /// at certain lengths, no plan may cross such a length, so that results do not depend on how rows
  /// are split.
  [[nodiscard]] virtual int32_t plan_limit() const noexcept {
    return std::numeric_limits<int32_t>::max();
  }
  /// Entries that can still be added if nobody else takes room meanwhile, over as many plans as
  /// plan_limit() requires. Any thread that may plan.
  [[nodiscard]] virtual int32_t room() const noexcept { return capacity() - length(); }
  /// As room() if nobody else had any, or more: what exceeds it can never be added.
  [[nodiscard]] virtual int32_t most_room() const noexcept { return capacity() - length(); }
  /// Whether nobody else has any. What room() does not promise may then still be there, for plans
  /// of fewer entries.
  [[nodiscard]] virtual bool has_all_room() const noexcept { return true; }
  /// At most so many entries more have room in other caches of its kind once it is empty.
  [[nodiscard]] virtual int64_t most_freed() const noexcept { return length(); }
  /// Whether a plan for `n` entries takes nothing that others hold or that a pool keeps for later.
  [[nodiscard]] virtual bool has_free(int32_t /*n*/) const noexcept { return true; }
  /// Entries behind length() that a layer surely keeps, up to whole tiles; all, unless it is a
  /// window's. A state must have them.
  static constexpr int32_t kAllEntries = std::numeric_limits<int32_t>::max();
  [[nodiscard]] virtual int32_t keeps_behind(int32_t /*layer*/) const noexcept {
    return kAllEntries;
  }
  /// The first entry of a layer that is there. All behind it are.
  [[nodiscard]] virtual int32_t first_held(int32_t /*layer*/) const noexcept { return 0; }
  /// The first entry of a layer that a saved state has.
  [[nodiscard]] virtual int32_t saves_from(int32_t layer) const noexcept {
    return first_kept(length(), keeps_behind(layer));
  }
  /// From now on an empty cache keeps what layers with a window let go, where it can choose.
  virtual void keep_all() noexcept {}
  /// Whether the cache keeps copies of what it lets go, see remember(). Constant.
  [[nodiscard]] virtual bool wants_points() const noexcept { return false; }
  /// So that a later truncate() may come back to `n` positions or fewer, if what they see is still
  /// there, and for as long as there is room for a copy. Without memory there is none.
  virtual void remember(int32_t /*n*/, SnapshotPlace /*place*/) noexcept {}
  /// Entries of a layer before this one were not written: a restored state had none.
  virtual void set_first_held(int32_t /*layer*/, int32_t /*entry*/) noexcept {}
  /// The first entry of a layer that is surely kept, of `length` entries.
  [[nodiscard]] static int32_t first_kept(int32_t length, int32_t behind) noexcept {
    return window_start(length, behind);
  }
  /// Reserves room for `n` more entries; kCacheFull or kOutOfMemory, and kPoolExhausted if
  /// traits().pooled and others hold the missing ones. Nothing observable changes. plan(0) is for
  /// reading.
  [[nodiscard]] virtual Result<CachePlan> plan(int32_t n) = 0;
  /// How the layers lie in blocks; constant.
  [[nodiscard]] virtual std::span<const engine::KvLayer> kv_layers() const noexcept = 0;
  /// The number of block tables of the layers: KvLayer::part is below it. Constant.
  [[nodiscard]] virtual int32_t parts() const noexcept { return 1; }
  /// The memory of a part's blocks; outlives the cache. Constant.
  [[nodiscard]] virtual engine::EngineMemory& engine_memory(int32_t part) const noexcept = 0;
  /// Where a part's entries are, including those of the plan; valid until the next change of the
  /// cache. Entries that a layer's operations read may have to be loaded first, see stage().
  /// kOutOfMemory.
  [[nodiscard]] virtual Result<engine::KvTables> tables(int32_t part, const CachePlan& plan) = 0;
  /// Loads the entries that the plan's rows see in a layer to where tables() says, once all
  /// operations of earlier layers have ended; layers come in ascending order. kIo and the like; the
  /// step may then be made again.
  virtual Status stage(int32_t /*layer*/, const CachePlan& /*plan*/) { return {}; }
  /// Whether stage() has anything to do for a plan.
  [[nodiscard]] virtual bool stages(const CachePlan& /*plan*/) const noexcept { return false; }
  /// Commits rows of the plan; the others are discarded. `rows` only if traits().keeps_paths;
  /// unless they are the first ones, they must be below kMaxTreeRows. Entries that must move are
  /// noted, and moved when the next plan is made; so plan(0) comes before reading, and blocks() has
  /// none of them before.
  virtual void commit(const CachePlan& plan, Kept kept) noexcept = 0;
  void commit(const CachePlan& plan) noexcept { commit(plan, {plan.count}); }
  /// Keeps the first max(n, 0) positions, or fewer if traits().cuts_exactly is not set; does
  /// nothing if that is all of them. kUnsupported, with nothing changed, if they are no longer
  /// held; kOutOfMemory if kept entries must be moved.
  virtual Status truncate(int32_t n) = 0;
  [[nodiscard]] virtual MemoryUse memory() const noexcept = 0;
  /// The maximum of memory().resident until the cache is full, if that differs from that of a full
  /// one.
  [[nodiscard]] virtual size_t max_resident() const noexcept { return memory().resident; }
  /// The parts of memory().resident and max_resident() that are not in the host's memory.
  [[nodiscard]] virtual size_t on_device() const noexcept {
    return engine_memory(0).in_host() ? 0 : memory().resident;
  }
  [[nodiscard]] virtual size_t max_on_device() const noexcept {
    return engine_memory(0).in_host() ? 0 : max_resident();
  }
  /// Bytes taken from memories in the host or on devices: those of the cache or, where it has a
  /// pool, all that the pool has taken, free blocks and those of others with it.
  struct Taken {
    size_t now = 0;
    size_t most = 0;  // until the cache is full
  };
  [[nodiscard]] virtual Taken taken(bool in_host) const noexcept {
    if (!in_host) return {on_device(), max_on_device()};
    return {memory().resident - on_device(), max_resident() - max_on_device()};
  }
  /// A separate sequence with the same content, in the same memory; paged and tiered caches and
  /// lanes share committed entries until one of the two writes. kOutOfMemory, and the errors of
  /// plan().
  [[nodiscard]] virtual Result<std::unique_ptr<KvCache>> fork() = 0;

  /// Null where there are no blocks to share.
  [[nodiscard]] virtual SharesBlocks* sharing() noexcept { return nullptr; }
  /// Null if entries cannot move to other positions.
  [[nodiscard]] virtual Shifts* shifting() noexcept { return nullptr; }

  /// Saves the content, see cache_state.h. These serve a cache that keeps exactly one entry for
  /// each position; others override them.
  virtual Status save(StateWriter& to);
  /// Reads the rest of a state into an empty cache, which is empty again on failure.
  virtual Status restore(StateReader& from);
};

}  // namespace gen::cache
