// SPDX-License-Identifier: Apache-2.0
// What a sequence's state shows of itself to an engine, in two halves as caches do: where a layer
// lies in any state (StateLayer, constant), and where the state of a sequence lies (StateRows, of a
// step). A state is read in one place and written in another, so that a step that fails has changed
// nothing.
#pragma once

#include <cstdint>

#include "engine/engine_ptr.h"

namespace gen::engine {

/// In floats.
struct StateLayer {
  int64_t first = 0;        // of the layer, in a state
  int64_t kept = 0;         // of the layer, in a kept row
  int64_t kept_stride = 0;  // from one kept row to the next
  friend bool operator==(const StateLayer&, const StateLayer&) = default;
};

/// Rows of one sequence in a step, and its state. Where it is open how many of the rows will stay,
/// the state does not take them in: what the recurrence takes of each is kept beside it instead,
/// and the next step begins with those that stayed, in the same order of operations.
struct StateRows {
  int32_t first_row = 0;  // of the batch
  int32_t n_rows = 0;
  int32_t unsettled = 0;  // rows of `kept` that go before the first row
  int32_t unused = 0;
  EnginePtr<const float> read;  // null: zeros
  EnginePtr<float> write;       // the state after all rows; with `keep`, after the unsettled ones
  EnginePtr<const float> kept;  // [unsettled][kept_stride]
  EnginePtr<float> keep;        // [n_rows][kept_stride], or null
};
static_assert(sizeof(StateRows) == 48);

}  // namespace gen::engine
