// SPDX-License-Identifier: Apache-2.0
// Who wants to see what a plan does implements Tracer and hands it to a run. Called in instruction
// order on the thread that runs the plan; a null tracer costs two branches per instruction, and
// nothing reads a clock.
#pragma once

#include <cstdint>

namespace gen::engine {

struct TraceEvent {
  int32_t index = -1;       // of the instruction in its plan
  const char* op = "";      // "rms_norm", "linear", "attention", …
  const char* detail = "";  // weight or site name, as long as the plan; may be empty
  int32_t layer = -1;       // cache layer for rope_append and attention, else -1
  int64_t rows = 0;
  int64_t cols = 0;  // width of the output
  /// What must come from memory if nothing is cached: weights of a product, keys and values of the
  /// visible entries for attention; 0 for all others.
  int64_t bytes = 0;
  /// Products that are summed (a multiplication and an addition each) of a linear or an attention.
  int64_t products = 0;
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  /// An instruction begins.
  virtual void record(const TraceEvent& event) noexcept = 0;
  /// The instruction recorded last has succeeded and its work is done, on devices too.
  virtual void done() noexcept {}
};

}  // namespace gen::engine
