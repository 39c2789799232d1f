// SPDX-License-Identifier: Apache-2.0
// Observes what the products of a pass read: the rows, still float32, that a matrix of the file is
// about to be multiplied with. Implement ProductObserver and pass it to a run of a plan that was
// compiled for one (CompileOptions::observed). A null observer costs a branch per instruction.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace gen::graph {

/// The input of one product, in host memory. Valid during the call only.
struct ProductInput {
  int32_t product = 0;  // its number in the plan
  /// The tensors of the file that are multiplied. Of a tensor that is multiplied piece by piece,
  /// the product with its first rows names it.
  std::span<const std::string> tensors;
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements
  // Of experts. Row t has the experts routes[t * route_stride + s], s below n_used, each in
  // [0, matrices). They read row t, or if there are n_used times as many rows, t * n_used + s.
  int64_t matrices = 1;
  const int32_t* routes = nullptr;  // null: not a product of experts
  int64_t routed = 0;               // rows of routes
  int32_t n_used = 1;
  int64_t route_stride = 0;
};

class ProductObserver {
 public:
  virtual ~ProductObserver() = default;
  /// Called in instruction order, on the thread that runs the plan, before the product runs. Rows
  /// of several calls for one product follow each other. A failure fails the run.
  virtual Status observe(const ProductInput& input) = 0;
};

}  // namespace gen::graph
