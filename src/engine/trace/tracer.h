// SPDX-License-Identifier: Apache-2.0
// Observes the run of a plan. Implement Tracer and pass it to a run. It is called in instruction
// order on the thread that runs the plan. A null tracer costs two branches per instruction and no
// clock reads.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace gen::engine {

/// A value of a plan that an instruction reads or writes.
struct TraceValue {
  int32_t value = -1;  // its number in the plan. A pass writes each number once, except values
                       // changed in place and selected rows, which are written once a chunk.
                       // -1 for inputs, which differ in each pass
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
  bool appends = false;     // appends rows to the caches
  const char* detail = "";  // weight or site name, as long as the plan; may be empty
  int32_t layer = -1;       // cache layer for rope_append and attention, else -1
  int64_t rows = 0;
  int64_t cols = 0;      // width of the output
  int64_t bytes = 0;     // see OpCost
  int64_t products = 0;  // see OpCost
  // Valid during record() only:
  std::span<const TraceValue> inputs;
  std::span<const TraceValue> outputs;
  /// For rope_append, which appends to the caches, and attention, which reads them.
  std::span<const TraceCache> caches;
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  /// An instruction begins.
  virtual void record(const TraceEvent& event) noexcept = 0;
  /// The last recorded instruction has succeeded, and its work is complete on devices as well.
  virtual void done() noexcept {}
  /// It has failed, and with it the run.
  virtual void failed() noexcept {}

  // A model that is a function of the caller has no plan. The operations that the function calls
  // are recorded as they happen, between these two:
  /// The function is called.
  virtual void enter() noexcept {}
  /// It has succeeded; after a failure the next call is enter().
  virtual void leave(const TraceEvent&) noexcept {}
};

/// Runs the last recorded instruction and reports its result.
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
