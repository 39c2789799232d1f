// SPDX-License-Identifier: Apache-2.0
// One sequence in blocks of a pool that many sequences share: memory is taken block by block as a
// sequence grows, and forks share blocks until one of them writes. What attention reads; the form
// for tensors of the C API is paged_store.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "cache/prefix/block_pool.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tile_layout.h"

namespace gen::cache {

/// A pool and how a block of it lies.
class CachePool {
 public:
  /// As many blocks of `block_size` positions as fit max_memory_mb * 2^20 bytes. kInvalidArgument
  /// for an unknown format, numbers below 1 and a budget below one block, telling what one takes.
  /// `memory` must outlive the pool and all its caches.
  static Result<std::shared_ptr<CachePool>> create(std::string_view format,
                                                   std::span<const LayerShape> layers,
                                                   int32_t block_size, int32_t max_memory_mb,
                                                   engine::EngineMemory& memory);

  [[nodiscard]] const TileLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] BlockPool& blocks() noexcept { return blocks_; }

 private:
  CachePool(TileLayout layout, size_t count, engine::EngineMemory& memory)
      : layout_(std::move(layout)),
        blocks_(layout_.block_bytes(), layout_.block_size(), count, memory) {}

  const TileLayout layout_;
  BlockPool blocks_;
};

/// An empty sequence of at most `capacity` entries, 1 and up. Its plan() fails with kPoolExhausted
/// when the pool has no block left, and nothing has changed then; fork() shares its blocks.
/// Threads: as every cache; caches of one pool may be used by different threads at once.
Result<std::unique_ptr<KvCache>> make_paged_cache(std::shared_ptr<CachePool> pool,
                                                  int32_t capacity);

}  // namespace gen::cache
