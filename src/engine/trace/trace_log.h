// SPDX-License-Identifier: Apache-2.0
// A record of operations in order, between tensors, each with a number of its own that is never
// used again. What a traced cache has done (tracing_store.h) and what a plan did
// (graph/plan_trace.h) are written by this one schema, as JSON or as Graphviz DOT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::engine {

/// Of a tensor: [batch, seq, dim], as keys and values have it; batch is 1 for what else there is.
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
  /// Makes room, so that so many more tensors, and add_op() of so many, cannot fail.
  void reserve(size_t tensors, size_t ops);
  /// Forgets all operations but the first n: those after them have not happened.
  void keep_ops(size_t n) noexcept {
    ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(n), ops_.end());
  }
  /// Memory was missing: the record is not all that was done.
  void set_incomplete() noexcept { incomplete_ = true; }

  [[nodiscard]] std::span<const TracedOp> ops() const noexcept { return ops_; }
  [[nodiscard]] bool incomplete() const noexcept { return incomplete_; }
  [[nodiscard]] TraceShape shape(int64_t tensor) const noexcept {
    return tensors_[static_cast<size_t>(tensor - 1)];
  }
  /// {"name":…,"inputs":[…],"outputs":[…],"attributes":{"layer":…,"weight":…}}, attributes only
  /// where there are any.
  [[nodiscard]] std::string op_json(size_t index) const;
  /// {"ops":[…],"tensors":[{"id":…,"shape":[batch,seq,dim]},…]} and a newline; "incomplete":true
  /// stands first if it is.
  [[nodiscard]] std::string json() const;
  /// A digraph: boxes are tensors, ellipses operations. Tensors that no operation names are left
  /// out.
  [[nodiscard]] std::string dot() const;

 private:
  std::vector<TraceShape> tensors_;  // number n at n - 1
  std::vector<TracedOp> ops_;
  bool incomplete_ = false;
};

}  // namespace gen::engine
