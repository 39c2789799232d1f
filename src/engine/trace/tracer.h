// SPDX-License-Identifier: Apache-2.0
// Who wants to see what a plan does implements Tracer and hands it to a run. Called in instruction
// order on the thread that runs the plan; a null tracer costs two branches per instruction, and
// nothing reads a clock.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace gen::engine {

/// A value of a plan that an instruction reads or writes.
struct TraceValue {
  int32_t value = -1;  // its number in the plan; instructions write a number once a pass, but for
                       // values that are changed in place and selected ones, once a chunk;
                       // -1 for what comes from outside and is another one each time
  int64_t rows = 0;
  int64_t cols = 0;
};

/// What an instruction does with a sequence's cache.
struct TraceCache {
  int64_t sequence = 0;  // names the sequence; 0 for one that has no name
  int32_t entries = 0;   // of the layer before the pass
  int32_t rows = 0;      // appended in this pass
  int32_t kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
};

struct TraceEvent {
  int32_t index = -1;       // of the instruction in its plan
  const char* op = "";      // "rms_norm", "linear", "attention", …
  bool appends = false;     // puts rows into the caches
  const char* detail = "";  // weight or site name, as long as the plan; may be empty
  int32_t layer = -1;       // cache layer for rope_append and attention, else -1
  int64_t rows = 0;
  int64_t cols = 0;      // width of the output
  int64_t bytes = 0;     // see OpCost
  int64_t products = 0;  // see OpCost
  // As long as record() runs:
  std::span<const TraceValue> inputs;
  std::span<const TraceValue> outputs;
  /// Of rope_append, which appends to them, and of attention, which reads all of them.
  std::span<const TraceCache> caches;
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  /// An instruction begins.
  virtual void record(const TraceEvent& event) noexcept = 0;
  /// The instruction recorded last has succeeded and its work is done, on devices too.
  virtual void done() noexcept {}
  /// It has failed, and with it the run.
  virtual void failed() noexcept {}

  // Models that are a function of the caller's have no plan. What the function asks of the library
  // is recorded above as it happens, between these two:
  /// The function is called.
  virtual void enter() noexcept {}
  /// It has succeeded; after a failure the next call is enter().
  virtual void leave(const TraceEvent&) noexcept {}
};

/// Does the work of the instruction recorded last, and tells how it ended.
template <typename Work>
Status run_traced(Tracer& tracer, Work&& work) {
  Status status;
  try {
    status = work();
  } catch (...) {
    tracer.failed();
    throw;
  }
  status.ok() ? tracer.done() : tracer.failed();
  return status;
}

}  // namespace gen::engine
