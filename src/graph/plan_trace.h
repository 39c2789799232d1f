// SPDX-License-Identifier: Apache-2.0
// A tracer that records the runs of plans (engine/trace/trace_log.h): each executed instruction
// with its input and output tensors, and each append to and read of a cache, in the schema of
// traced caches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/trace/trace_log.h"
#include "engine/trace/tracer.h"

namespace gen::graph {

/// Every run of an instruction is an operation with its name, and the weight's name for products.
/// Its inputs are the latest tensors of the values that it reads; its outputs are new tensors:
///   rope_append  outputs: the rotated q, and the rows of keys and values to be stored,
///                [kv heads, rows, dim]
///   KVCacheAppendK, KVCacheAppendV  follow it for each sequence: the side before, if it held
///                something, and those rows; output: the side after
///   KVCacheGetK, KVCacheGetV  precede an attention for each sequence: the side; output: what is
///                read
///   attention    inputs: q, and what was read
/// A call of the caller's own function is an operation, too, after those that the function called:
///   forward      inputs: its rows, [1, rows, 1], and the results of attention; output: logits
/// The function's inputs to attention are tensors without a producer, and so are the contents of a
/// sequence from before it was traced or after it was truncated. A failed instruction is not
/// recorded. If an allocation fails, the record is marked as incomplete. Threads: one run at a
/// time.
class PlanTrace final : public engine::Tracer {
 public:
  explicit PlanTrace(std::shared_ptr<engine::TraceLog> log) : log_(std::move(log)) {}

  void record(const engine::TraceEvent& event) noexcept override;
  void failed() noexcept override { log_->keep_ops(before_); }
  void leave(const engine::TraceEvent& event) noexcept override { record(event); }

 private:
  /// The tensors that a layer's keys and values were when it was `length` long; 0 for none.
  struct Sides {
    int64_t k = 0;
    int64_t v = 0;
    int32_t length = 0;
  };

  void add(const engine::TraceEvent& event);
  void add_appends(const engine::TraceEvent& event, int64_t k_rows, int64_t v_rows);
  void add_append(const char* name, int32_t layer, int64_t before, int64_t rows, int64_t after);
  int64_t add_read(const char* name, int32_t layer, int64_t side);
  /// The content of a layer of a sequence, which is `length` entries.
  Sides& sides(const engine::TraceCache& cache, int32_t layer, int32_t length);
  /// Records both, or none if an allocation fails.
  Sides new_sides(const engine::TraceCache& cache, int32_t length);
  /// The tensor of a value; a new one if the value was not made before.
  int64_t tensor(const engine::TraceValue& value);
  int64_t make(const engine::TraceValue& value);

  std::shared_ptr<engine::TraceLog> log_;
  std::vector<int64_t> tensors_;                        // by the value's number
  std::map<std::pair<int64_t, int32_t>, Sides> sides_;  // by sequence and layer
  size_t before_ = 0;  // operations before the instruction that runs
};

}  // namespace gen::graph
