// SPDX-License-Identifier: Apache-2.0
// What a cache that can be written in place needs for Shifts::shift (kv_cache.h).
#pragma once

#include <span>
#include <vector>

#include "cache/sequence/cache_format.h"
#include "engine/ops.h"

namespace gen::cache {

/// Whether entries of these layers can be moved at the cost of one more rounding of each key: keys
/// as float32 or binary16, rotated as they are or not at all, by known angles. Layers with chunks
/// cannot: entries of one chunk would not stay in one chunk.
[[nodiscard]] bool can_shift_entries(const CacheFormat& format,
                                     std::span<const LayerShape> layers) noexcept;

/// The angles by which keys of each layer are rotated, null where they are not.
std::vector<const engine::RopeTable*> turning_tables(std::span<const LayerShape> layers);

}  // namespace gen::cache
