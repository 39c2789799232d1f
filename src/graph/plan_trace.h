// SPDX-License-Identifier: Apache-2.0
// A tracer that writes what plans do into a record of operations (engine/trace/trace_log.h): each
// instruction that was run with the tensors it read and made, and each append to and read of a
// cache, by the schema of traced caches.
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

/// Every run of an instruction is an operation of its name, with the weight's name of a product;
/// what it reads are the tensors that were last made of those values, what it writes are new ones:
///   rope_append  outputs: the turned q, and the rows to keep of keys and of values,
///                [kv heads, rows, dim]
///   KVCacheAppendK, KVCacheAppendV  follow it for each sequence: the side before, if it held
///                something, and those rows; output: the side after
///   KVCacheGetK, KVCacheGetV  precede an attention for each sequence: the side; output: what is
///                read
///   attention    inputs: q, and what was read
/// A call of the caller's own function is one, too, after what the function asked for:
///   forward      inputs: its rows, [1, rows, 1], and what attention gave it; output: logits
/// What the function gives to attention are tensors that no operation made. An instruction that
/// failed is not recorded. What a sequence held before it was traced, or after it was cut, is a
/// tensor that no operation made. Where memory is missing the record says so. Threads: one run at a
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
  /// Both or, without memory, none.
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
