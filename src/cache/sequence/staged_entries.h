// SPDX-License-Identifier: Apache-2.0
// Entries of a cache on their way to the host or back: keys or values of a layer, a few tiles at a
// time, in the form that saved states have. Caches lie in an engine's memory; what reads or writes
// them from outside of a step goes through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "engine/kv_layer.h"
#include "engine/memory.h"

namespace gen::cache {

/// Keys or values of `heads` heads in rows of tiles: sixteen entries of all heads, then what heads
/// share of them. `row_bytes` are those of a row.
struct TileRows {
  engine::KvSideForm form;
  size_t row_bytes = 0;
};
TileRows tile_rows(engine::KvFormat format, engine::KvOrder order, int32_t heads,
                   int32_t head_dim) noexcept;

/// Rows of tiles that `entries` entries take.
constexpr size_t tile_count(int32_t entries) noexcept {
  return (static_cast<size_t>(entries) + engine::kKvTile - 1) / engine::kKvTile;
}

/// One side of one layer of a plan, staged: see KvCache::tables and stage. Valid as long as those.
class StagedSide {
 public:
  /// Entries that go at once, whole tiles.
  static constexpr int32_t kMost = engine::kKvChunk;

  /// Brings the layer. What KvCache::tables and stage say; kOutOfMemory.
  static Result<StagedSide> create(KvCache& cache, int32_t layer, const CachePlan& plan,
                                   engine::KvOrder order);

  [[nodiscard]] const TileRows& rows() const noexcept { return rows_; }
  [[nodiscard]] int32_t heads() const noexcept { return layer_->kv_heads; }

  /// Rows of tiles with entries [first, first + n), n at most kMost, as they are stored; valid
  /// until the next call. Lanes of the last tile that hold no entry are zeros.
  Result<std::span<const std::byte>> read(int32_t first, int32_t n);
  /// The reverse: entry `first` is the one `skip` entries behind the first of `bytes`, skip + n at
  /// most kMost.
  Status write(std::span<const std::byte> bytes, int32_t skip, int32_t first, int32_t n);

 private:
  enum class Way : uint8_t { kOut, kIn };
  /// Entries [first, first + n) of the cache are those from `staged` on of what is staged.
  Status copy(int32_t first, int32_t staged, int32_t n, Way way) const;

  engine::EngineMemory* memory_ = nullptr;
  const engine::KvLayer* layer_ = nullptr;
  engine::KvTables tables_;
  engine::KvOrder order_ = engine::KvOrder::kKeys;
  TileRows rows_;
  engine::EngineBuffer staging_;
  std::vector<std::byte> bytes_;
};

/// Committed keys or values of a plan, dense float32 [heads, plan.start, head_dim]; keys as the
/// model made them, before any Hadamard turn. Errors as StagedSide::create.
Status decode_entries(KvCache& cache, int32_t layer, const CachePlan& plan, engine::KvOrder order,
                      float* out);

}  // namespace gen::cache
