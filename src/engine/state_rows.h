// SPDX-License-Identifier: Apache-2.0
// How engines see a recurrent state: the constant place of a layer within any state (StateLayer),
// and the state of a sequence in a step (StateRows). A step reads one buffer and writes another, so
// that a failed step leaves the state unchanged.
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

/// The rows of one sequence in a step, and its state. Rows that may be taken back, such as drafts,
/// do not enter the state: their inputs to the recurrence are kept beside it, and the next step
/// begins with those of the accepted rows, in the same order of operations.
struct StateRows {
  int32_t first_row = 0;  // of the batch
  int32_t n_rows = 0;
  int32_t unsettled = 0;  // rows of `kept` to apply before the first row
  int32_t certain = 0;    // with `keep`: first rows that enter the state; only the others are kept
  EnginePtr<const float> read;  // null: zeros
  EnginePtr<float> write;       // the state after all rows; with `keep`, after the certain ones
  EnginePtr<const float> kept;  // [unsettled][kept_stride]
  EnginePtr<float> keep;        // [n_rows - certain][kept_stride], or null
};
static_assert(sizeof(StateRows) == 48);

}  // namespace gen::engine
