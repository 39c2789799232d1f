// SPDX-License-Identifier: Apache-2.0
// Who wants to see what a plan does implements Tracer and hands it to a run. Called in instruction
// order on the thread that runs the plan; a null tracer costs one branch per instruction.
#pragma once

#include <cstdint>

namespace gen::engine {

struct TraceEvent {
  const char* op = "";      // "rms_norm", "linear", "attention", …
  const char* detail = "";  // weight or site name; may be empty
  int32_t layer = -1;       // cache layer for rope_append and attention, else -1
  int64_t rows = 0;
  int64_t cols = 0;  // width of the output
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void record(const TraceEvent& event) noexcept = 0;
};

}  // namespace gen::engine
