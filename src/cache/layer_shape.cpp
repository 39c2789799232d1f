// SPDX-License-Identifier: Apache-2.0
// See layer_shape.h.
#include "cache/layer_shape.h"

namespace gen::cache {

ShapeDifference shape_difference(const LayerShape& first, const LayerShape& second) noexcept {
  ShapeDifference found;
  const auto differ = [&found](const char* what, int32_t a, int32_t b) {
    if (a != b) found = {what, a, b};
    return a != b;
  };
  static_cast<void>(
      differ("kv heads", first.kv_heads, second.kv_heads) ||
      differ("key elements", first.k_dim, second.k_dim) ||
      differ("value elements", first.v_dim, second.v_dim) ||
      differ("window", first.window, second.window) || differ("chunk", first.chunk, second.chunk) ||
      differ("rope kind", static_cast<int32_t>(first.rope), static_cast<int32_t>(second.rope)) ||
      differ("rope elements", first.rope_dims, second.rope_dims));
  return found;
}

}  // namespace gen::cache
