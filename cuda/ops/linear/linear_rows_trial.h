// SPDX-License-Identifier: Apache-2.0
// The trial of a library's algorithms for a product of rows that must have one result
// (matrix_products.h): each is compared with our own kernel, and timed if it has the same bits.
#pragma once

#include "cuda/ops/linear/linear_float_rows.cuh"

namespace gen::cuda {

class RowsTrial {
 public:
  /// Whether there are enough sums to compare, and room for them in the workspace.
  static bool tells(int64_t rows, int64_t outputs, size_t workspace_bytes) noexcept;

  /// `rows` are the product's x, rounded, and `weight` its w.
  RowsTrial(const OpContext& context, const RoundedRows& rows, const WeightSegment& weight) noexcept
      : context_(context), rows_(rows), weight_(weight) {}

  /// Tries each untried algorithm. Synchronises with the device once per algorithm and once per
  /// timing.
  Status run(MatrixProducts& library, const MatrixProduct& product);

 private:
  /// Compares the library's result of `product` with our own kernel's.
  Result<MatrixProducts::Verdict> compare(const MatrixProduct& product);
  /// The sums of `product` by our own kernel, in the memory of the library's.
  Status own_sums(const MatrixProduct& product);
  /// Those of `n` outputs from `first` on.
  Status own_sums(const MatrixProduct& product, int64_t first, int64_t n, float* y, int64_t stride);

  const OpContext& context_;
  const RoundedRows rows_;
  const WeightSegment& weight_;
};

}  // namespace gen::cuda
