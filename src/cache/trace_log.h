// SPDX-License-Identifier: Apache-2.0
// What a traced cache has done, in order: operations between tensors, each tensor with a number of
// its own that is never used again. Written as JSON or as Graphviz DOT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/tensor_provider.h"

namespace gen::cache {

/// A number of 0 is no tensor.
struct TracedOp {
  const char* name = "";  // static text
  int32_t layer = 0;
  int64_t inputs[2] = {0, 0};
  int64_t output = 0;
};

/// Threads: not synchronised.
class TraceLog {
 public:
  /// Makes room, so that so many more tensors and operations cannot fail.
  void reserve(size_t tensors, size_t ops);
  /// A new tensor's number: 1, 2, 3, …
  int64_t add_tensor(const TensorShape& shape);
  void add_op(const TracedOp& op) { ops_.push_back(op); }

  [[nodiscard]] std::span<const TracedOp> ops() const noexcept { return ops_; }
  /// {"name":…,"inputs":[…],"outputs":[…],"attributes":{"layer":…}}
  [[nodiscard]] std::string op_json(size_t index) const;
  /// {"ops":[…],"tensors":[{"id":…,"shape":[batch,seq,dim]},…]} and a newline.
  [[nodiscard]] std::string json() const;
  /// A digraph: boxes are tensors, ellipses operations.
  [[nodiscard]] std::string dot() const;

 private:
  std::vector<TensorShape> tensors_;  // number n at n - 1
  std::vector<TracedOp> ops_;
};

}  // namespace gen::cache
