// SPDX-License-Identifier: Apache-2.0
// Where what a row sees of a layer with a window begins, for caches and what keeps blocks for them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kv_layer.h"

namespace gen::cache {

/// The first entry, down to whole tiles, that the row after `length` entries reads if it sees
/// `behind` entries before its own.
constexpr int32_t window_start(int32_t length, int32_t behind) noexcept {
  return std::max(length - behind, 0) / engine::kKvTile * engine::kKvTile;
}

}  // namespace gen::cache
