// SPDX-License-Identifier: Apache-2.0
// One sequence whose newest positions are in memory and whose oldest are in a file: for contexts
// beyond memory, as attention reads them. Layers are read back while those before them compute. The
// form for tensors of the C API, where whole layers move, is tiered_store.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_ops.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"

namespace gen::cache {

/// What tiered caches have moved and read so far.
struct TierCounts {
  std::atomic<uint64_t> demotions{0};   // blocks that went to a file
  std::atomic<uint64_t> promotions{0};  // blocks that came back to be written
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<uint64_t> bytes_read{0};
  /// Blocks of a layer that attention read: from the file then, or read before.
  std::atomic<uint64_t> cold_hits{0};
  std::atomic<uint64_t> warm_hits{0};
};

struct TieredCacheOptions {
  static constexpr int32_t kBlockSize = engine::kKvChunk;  // what a chunk of attention reads

  std::string format = "fp32";      // as in cache_format.h
  std::string cold_dir;             // empty: where the system keeps temporary files
  size_t hot_bytes = 0;             // blocks in memory and room to read others
  int32_t hot_blocks = 0;           // newest blocks in memory; 0: as many as hot_bytes allow
  int32_t block_size = kBlockSize;  // positions of a block
  /// Layers that a thread of the cache reads while others compute. It needs a CPU that nothing else
  /// uses, or it does harm; with 0 the system is told what comes next, and the thread only helps
  /// with what is needed now.
  int32_t prefetch_layers = 0;
  FileOps* files = nullptr;                      // null: the system's
  std::shared_ptr<TierCounts> counts = nullptr;  // of the cache and its forks; null: nobody's
};

/// An empty sequence of at most `capacity` entries. Blocks are cut at the same positions in all
/// layers; [0, cold) are in the file, as they were in memory, so nothing is lost by it. plan()
/// moves blocks to the file, and with them waits for the disk; it fails with kIo if that is full,
/// and the sequence stays usable. view() fails with kIo or kFormat if a block cannot be read back;
/// the step may be made again. A view is valid until the view of another layer. fork() shares all
/// blocks. kInvalidArgument for numbers below 1 (hot_blocks, prefetch_layers: below 0) and for
/// hot_bytes that are too few for `capacity` entries, naming the bytes needed; kIo if no file can
/// be made. Threads: like every cache; forks may be used by different threads at once. `memory` and
/// files must outlive all of them.
Result<std::unique_ptr<KvCache>> make_tiered_cache(const TieredCacheOptions& options,
                                                   std::span<const LayerShape> layers,
                                                   int32_t capacity, engine::EngineMemory& memory);

}  // namespace gen::cache
