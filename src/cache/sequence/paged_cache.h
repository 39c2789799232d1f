// SPDX-License-Identifier: Apache-2.0
// One sequence in blocks of a pool that many sequences share: memory is taken block by block as a
// sequence grows, and forks share blocks until one of them writes. What attention reads; the form
// for tensors of the C API is paged_store.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cache/prefix/block_pool.h"
#include "cache/sequence/layer_memories.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tile_layout.h"

namespace gen::cache {

/// What sequences of a pool keep of layers with a window.
struct PoolWindows {
  /// Positions that a sequence may surely go back; blocks that lie further, or more than a block if
  /// that is more, behind what rows see are given back. Negative: none are.
  int32_t rewind = -1;
  /// Lengths that it can go back to all the same (KvCache::remember), at most.
  int32_t points = 0;
  /// Rows of a plan, at most, for KvCache::room().
  int32_t rows = engine::kKvChunk;
};

/// A pool and how its blocks lie. A block has the entries of all layers, in one part for each
/// memory that layers lie in. Where layers with windows give blocks back, layers are put into bins
/// of about the same size in each memory, each of layers that see the same, and a block has those
/// of one bin: so all layers draw on one budget, whatever they keep.
class CachePool {
 public:
  /// As many blocks of `block_size` positions as fit max_memory_mb * 2^20 bytes, those of all
  /// memories together. kInvalidArgument for an unknown format, numbers below 1 and a budget below
  /// one block, telling what one takes. `memories` are those of the layers, at most kMaxBlockParts
  /// different ones, and must outlive the pool and all its caches; without layers the first one
  /// counts, and a block takes 64 bytes.
  static Result<std::shared_ptr<CachePool>> create(std::string_view format,
                                                   std::span<const LayerShape> layers,
                                                   int32_t block_size, int32_t max_memory_mb,
                                                   LayerMemories memories,
                                                   PoolWindows windows = {});
  /// All layers in one memory.
  static Result<std::shared_ptr<CachePool>> create(std::string_view format,
                                                   std::span<const LayerShape> layers,
                                                   int32_t block_size, int32_t max_memory_mb,
                                                   engine::EngineMemory& memory,
                                                   PoolWindows windows = {});

  [[nodiscard]] const CacheFormat& format() const noexcept { return layouts_[0].format(); }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept { return shapes_; }
  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept { return kv_layers_; }
  /// Of a table's own layers: there is a table for each part of each bin.
  [[nodiscard]] const TileLayout& layout(size_t table = 0) const noexcept {
    return layouts_[table];
  }
  [[nodiscard]] size_t tables() const noexcept { return layouts_.size(); }
  /// The entries before its own that a row reads in each bin, up to whole tiles; negative: all. One
  /// where there are no bins.
  [[nodiscard]] std::span<const int32_t> reaches() const noexcept { return reaches_; }
  [[nodiscard]] int32_t rewind() const noexcept { return windows_.rewind; }
  [[nodiscard]] int32_t window_points() const noexcept { return windows_.points; }
  [[nodiscard]] int32_t window_rows() const noexcept { return windows_.rows; }
  /// The group of a bin's blocks (Block::group): bins that see the same share one, unless there are
  /// more than kMaxBlockGroups.
  [[nodiscard]] size_t group_of(size_t bin) const noexcept { return groups_[bin]; }
  /// Of a position in a full tile, over all layers.
  [[nodiscard]] size_t bytes_per_entry() const noexcept;
  [[nodiscard]] BlockPool& blocks() noexcept { return blocks_; }

 private:
  struct Tables;
  CachePool(Tables tables, std::span<const BlockPart> parts, size_t count,
            const PoolWindows& windows);

  const std::vector<TileLayout> layouts_;  // by table
  const std::vector<int32_t> reaches_;     // by bin
  std::vector<size_t> groups_;             // by bin
  const PoolWindows windows_;
  std::vector<LayerShape> shapes_;
  std::vector<engine::KvLayer> kv_layers_;
  BlockPool blocks_;
};

/// An empty sequence of at most `capacity` entries, 1 and up. Its plan() fails with kPoolExhausted
/// when the pool has no block left, and nothing has changed then; fork() shares its blocks.
/// Threads: like every cache; caches of one pool may be used by different threads at once.
Result<std::unique_ptr<KvCache>> make_paged_cache(std::shared_ptr<CachePool> pool,
                                                  int32_t capacity);

}  // namespace gen::cache
