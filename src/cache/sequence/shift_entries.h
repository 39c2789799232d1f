// SPDX-License-Identifier: Apache-2.0
// What a cache that can be written in place needs for KvCache::shift: its later entries move to
// earlier places, and their keys are turned by as many positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/sequence/cache_format.h"
#include "cache/sequence/kv_cache.h"
#include "engine/kv_view.h"
#include "engine/rope.h"

namespace gen::cache {

/// Whether entries of these layers can be moved so that it costs a key one more rounding and
/// nothing else: keys as float32 or binary16, rotated as they are or not at all, by angles that are
/// known. Layers that see chunks cannot: what is in one chunk would not be afterwards.
[[nodiscard]] bool can_shift_entries(const CacheFormat& format,
                                     std::span<const LayerShape> layers) noexcept;

/// Moves entries of all layers down by `n`. Made before anything changes, since memory may be
/// short then; moving cannot fail.
class EntryShift {
 public:
  /// Layers as can_shift_entries() accepts them.
  EntryShift(std::span<const LayerShape> layers, int32_t n);
  /// Entries [first + n, view.entries) of a layer become [first, view.entries - n).
  void move(int32_t layer, const engine::KvView& view, int32_t first) noexcept;

 private:
  int32_t n_;
  std::vector<engine::RopeTurn> turns_;  // of each table
  std::vector<size_t> turn_of_;          // [layers], turns_.size() for none
  std::vector<float> row_;
  std::vector<double> head_;
};

}  // namespace gen::cache
