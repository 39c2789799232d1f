// SPDX-License-Identifier: Apache-2.0
// What a cache must know of a layer.
#pragma once

#include <cstdint>

#include "engine/ops.h"

namespace gen::cache {

/// What a cache must know of a layer; it never sees a model.
struct LayerShape {
  int32_t kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  int32_t window = 0;  // visible entries, the row itself included; 0 means all
  engine::RopeKind rope = engine::RopeKind::kNone;
  int32_t rope_dims = 0;
  int32_t chunk = 0;  // positions p with p / chunk as the row's are visible; 0 means all
  /// The model's angles, for caches that move keys; the model owns it. Null where it is not known.
  const engine::RopeTable* rope_table = nullptr;
};

}  // namespace gen::cache
