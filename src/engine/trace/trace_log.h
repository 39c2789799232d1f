// SPDX-License-Identifier: Apache-2.0
// An ordered record of operations on tensors. Tensors have unique numbers that are never reused.
// Traced caches (tracing_store.h) and plans (graph/plan_trace.h) use this one schema, written as
// JSON or as Graphviz DOT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::engine {

/// The shape of a tensor, [batch, seq, dim]; batch is 1 for all but keys and values.
struct TraceShape {
  int32_t batch = 0;
  int32_t seq = 0;
  int32_t dim = 0;
};

struct TracedOp {
  const char* name = "";  // static text
  int32_t layer = -1;     // -1 for none
  std::string weight;     // of a product; empty for none
  std::vector<int64_t> inputs;
  std::vector<int64_t> outputs;
};

/// Threads: not synchronised.
class TraceLog {
 public:
  /// A new tensor's number: 1, 2, 3, …
  int64_t add_tensor(const TraceShape& shape);
  void add_op(TracedOp op) { ops_.push_back(std::move(op)); }
  /// Reserves room so that creating this many more tensors and operations cannot fail.
  void reserve(size_t tensors, size_t ops);
  /// Drops all operations after the first n: they were rolled back.
  void keep_ops(size_t n) noexcept {
    ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(n), ops_.end());
  }
  /// An allocation failed: the record is not complete.
  void set_incomplete() noexcept { incomplete_ = true; }

  [[nodiscard]] std::span<const TracedOp> ops() const noexcept { return ops_; }
  [[nodiscard]] bool incomplete() const noexcept { return incomplete_; }
  [[nodiscard]] TraceShape shape(int64_t tensor) const noexcept {
    return tensors_[static_cast<size_t>(tensor - 1)];
  }
  /// {"name":…,"inputs":[…],"outputs":[…],"attributes":{"layer":…,"weight":…}}, attributes only
  /// where there are any.
  [[nodiscard]] std::string op_json(size_t index) const;
  /// {"ops":[…],"tensors":[{"id":…,"shape":[batch,seq,dim]},…]} and a newline; begins with
  /// "incomplete":true if the record is incomplete.
  [[nodiscard]] std::string json() const;
  /// A digraph: boxes are tensors, ellipses are operations. Tensors without operations are left
  /// out.
  [[nodiscard]] std::string dot() const;

 private:
  std::vector<TraceShape> tensors_;  // number n at n - 1
  std::vector<TracedOp> ops_;
  bool incomplete_ = false;
};

}  // namespace gen::engine
