// SPDX-License-Identifier: Apache-2.0
// See state_shape.h.
#include "cache/state/state_shape.h"

namespace gen::cache {
namespace {

constexpr int64_t kFloats = 16;  // floats per 64 bytes

int64_t aligned(int64_t floats) { return (floats + kFloats - 1) / kFloats * kFloats; }

}  // namespace

StateLayout state_layout(std::span<const StateShape> shapes, std::span<const StateFacts> facts) {
  StateLayout layout;
  layout.shapes.assign(shapes.begin(), shapes.end());
  layout.facts.assign(facts.begin(), facts.end());
  for (const StateShape& shape : shapes) {
    layout.layers.push_back({layout.cells, layout.inputs, 0});
    layout.cells += aligned(shape.cells);
    layout.inputs += aligned(shape.inputs);
  }
  for (engine::StateLayer& layer : layout.layers) layer.kept_stride = layout.inputs;
  return layout;
}

}  // namespace gen::cache
