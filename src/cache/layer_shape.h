// SPDX-License-Identifier: Apache-2.0
// What a cache needs to know about a layer. For models that are plans it comes from the graph's
// attention nodes (graph/cache_layers.h).
#pragma once

#include <cstdint>

#include "engine/ops.h"

namespace gen::cache {

/// What a cache needs to know about a layer; it never sees a model.
struct LayerShape {
  int32_t kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  int32_t window = 0;  // visible entries, the row itself included; 0 means all
  engine::RopeKind rope = engine::RopeKind::kNone;
  int32_t rope_dims = 0;
  int32_t chunk = 0;  // positions p with p / chunk as the row's are visible; 0 means all
  /// The model's angles, for caches that move keys; the model owns them. Null if unknown.
  const engine::RopeTable* rope_table = nullptr;
};

/// A number that two shapes differ in.
struct ShapeDifference {
  const char* what = nullptr;  // "kv heads", "window"; null for none. Static text
  int32_t first = 0;
  int32_t second = 0;
  explicit operator bool() const noexcept { return what != nullptr; }
};

/// The first number in which they differ. Angles are not compared: a cache may have been made
/// without them.
ShapeDifference shape_difference(const LayerShape& first, const LayerShape& second) noexcept;

}  // namespace gen::cache
