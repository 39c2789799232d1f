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

/// A pool and how a block of it lies: in one part for each memory that layers lie in.
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
                                                   LayerMemories memories);
  /// All layers in one memory.
  static Result<std::shared_ptr<CachePool>> create(std::string_view format,
                                                   std::span<const LayerShape> layers,
                                                   int32_t block_size, int32_t max_memory_mb,
                                                   engine::EngineMemory& memory);

  [[nodiscard]] const CacheFormat& format() const noexcept { return layouts_[0].format(); }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept { return shapes_; }
  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept { return kv_layers_; }
  /// Of a part's own layers.
  [[nodiscard]] const TileLayout& layout(size_t part = 0) const noexcept { return layouts_[part]; }
  /// Of a position in a full tile, over all layers.
  [[nodiscard]] size_t bytes_per_entry() const noexcept;
  [[nodiscard]] BlockPool& blocks() noexcept { return blocks_; }

 private:
  CachePool(std::vector<TileLayout> layouts, std::span<const BlockPart> parts, size_t count)
      : layouts_(std::move(layouts)), blocks_(parts, layouts_[0].block_size(), count) {}

  const std::vector<TileLayout> layouts_;  // by part
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
