// SPDX-License-Identifier: Apache-2.0
// What a state must know of a recurrent layer, and how such layers lie in one state. For models
// that are plans the graph's nodes say it (Graph::states).
#pragma once

#include <array>
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

/// What the cells of a layer are, for who reads them.
struct StateFacts {
  const char* kind = "";             // static: which recurrence
  int32_t block = -1;                // of the model
  std::array<int32_t, 3> dims = {};  // of the cells, in the order in which they lie
};
/// Numbers of a layer.
constexpr int64_t state_numbers(const std::array<int32_t, 3>& dims) noexcept {
  return int64_t{dims[0]} * dims[1] * dims[2];
}

/// Layers one after another, each on a multiple of 64 bytes.
struct StateLayout {
  std::vector<StateShape> shapes;
  std::vector<StateFacts> facts;  // of each layer, or none
  std::vector<engine::StateLayer> layers;
  int64_t cells = 0;   // of all layers
  int64_t inputs = 0;  // of one row
};
StateLayout state_layout(std::span<const StateShape> shapes,
                         std::span<const StateFacts> facts = {});

}  // namespace gen::cache
