// SPDX-License-Identifier: Apache-2.0
// A product of rows with weights of 16 bits, step by step: by a library's sums and what comes after
// them, or by our own kernel. Implemented in linear_float_rows.cu.
#pragma once

#include "cuda/ops/linear_float_rows.cuh"

namespace gen::cuda {

class RowsProduct {
 public:
  /// `own`: no library.
  RowsProduct(const OpContext& context, DType type, const PackedRows& x, bool own) noexcept;

  /// Takes the operation's scratch memory, for `outputs` outputs at once and weights of
  /// `weight_bytes` beside them, and rounds the rows, unless they are bfloat16 already.
  Status prepare(const LinearEnd& end, int64_t outputs, size_t weight_bytes = 0);
  [[nodiscard]] uint8_t* weights() const noexcept { return weights_; }
  [[nodiscard]] bool has_library() const noexcept { return library_ != nullptr; }

  /// The library's sums of the outputs of `end`, or of what they gate; false: it does not do them.
  bool sum(const LinearEnd& end, const WeightSegment& by, bool up);
  /// After them.
  Status finish(const LinearEnd& end);
  /// The whole by our own kernel. Fresh weights are those that the kernel before it writes.
  Status multiply(const LinearEnd& end, const WeightSegment& weight, const WeightSegment* up,
                  bool fresh_weights);

 private:
  const OpContext& context_;
  DType type_;
  PackedRows x_;
  MatrixProducts* library_;
  size_t workspace_bytes_ = 0;
  RoundedRows rows_ = {};
  float* sums_ = nullptr;
  float* ups_ = nullptr;
  uint8_t* weights_ = nullptr;
  uint8_t* workspace_ = nullptr;
};

}  // namespace gen::cuda
