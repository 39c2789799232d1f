// SPDX-License-Identifier: Apache-2.0
// A cache whose layers see only the last entries and which keeps little more than these: a ring of
// segments laid out as in tile_layout.h. The block table names a segment for each part of the whole
// length, so that attention reads the entries of a window where it would read them in a cache that
// keeps all, with the same bits. What a window was at a few lengths is copied before it is written
// over, so that a sequence can be cut back to there, however far that is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "cache/sequence/cache_format.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory.h"

namespace gen::cache {

struct WindowRoom {
  int32_t rows = engine::kKvChunk;    // of a plan, at most
  int32_t rewind = engine::kKvChunk;  // positions that truncate() surely can go back
  int32_t copies = 0;                 // of windows, at most: see KvCache::remember
  /// Where the older half of a full context behind so many positions is dropped and the others move
  /// (KvCache::shifting): layers keep all unless window_slides().
  std::optional<int32_t> lead = std::nullopt;
};

/// The entries before its own that a row of a layer may see; negative: all.
int32_t window_reach(const LayerShape& layer) noexcept;

/// Whether a layer has a window so short that none of the first `lead` positions is in it when the
/// older half of those behind them, of `capacity`, was dropped.
bool window_slides(const LayerShape& layer, int32_t capacity, int32_t lead) noexcept;

/// An empty cache of up to `capacity` entries, of which it keeps those that the next row sees, and
/// WindowRoom. Where that is the whole capacity it is a contiguous cache. All layers have the same
/// reach. A cut behind which rows would see what is gone leaves what the best copy has: as many
/// positions as rows can follow, often none. A copy has `rewind` positions more than its window,
/// takes memory when the ring writes over it, and is shared by forks. With WindowRoom::lead entries
/// can be shifted if the next row then sees none before the dropped ones; copies behind them go.
/// kOutOfMemory.
Result<std::unique_ptr<KvCache>> create_window_cache(const CacheFormat& format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t capacity, const WindowRoom& room,
                                                     engine::EngineMemory& memory);

/// As make_cache, with a cache for each group of layers that see the same.
Result<std::unique_ptr<KvCache>> make_windowed_cache(std::string_view format,
                                                     std::span<const LayerShape> layers,
                                                     int32_t capacity, const WindowRoom& room,
                                                     engine::EngineMemory& memory);

}  // namespace gen::cache
