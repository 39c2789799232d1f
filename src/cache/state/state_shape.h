// SPDX-License-Identifier: Apache-2.0
// What a state must know of a recurrent layer, and how such layers lie in one state. For models
// that are plans the graph's nodes say it (Graph::states).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/state_rows.h"

namespace gen::cache {

/// In floats.
struct StateShape {
  int64_t cells = 0;   // what the layer carries from row to row
  int64_t inputs = 0;  // what its recurrence takes of a row
  friend bool operator==(const StateShape&, const StateShape&) = default;
};

/// Layers one after another, each on a multiple of 64 bytes.
struct StateLayout {
  std::vector<StateShape> shapes;
  std::vector<engine::StateLayer> layers;
  int64_t cells = 0;   // of all layers
  int64_t inputs = 0;  // of one row
};
StateLayout state_layout(std::span<const StateShape> shapes);

}  // namespace gen::cache
