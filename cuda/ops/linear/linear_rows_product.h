// SPDX-License-Identifier: Apache-2.0
// A product of rows with weights of 16 bits, step by step: a library's sums and an epilogue, or our
// own kernel. If a row must have one result, the library uses only an algorithm that trials have
// shown to have our own kernel's bits. The number of rows is then padded to one of a few values,
// since each value is tried. Implemented in linear_float_rows.cu.
#pragma once

#include "cuda/ops/linear/linear_float_rows.cuh"

namespace gen::cuda {

class RowsProduct {
 public:
  /// `own`: with our own kernel's bits.
  RowsProduct(const OpContext& context, DType type, const PackedRows& x, bool own) noexcept;

  /// Must be called first with `own`: decides who computes the product, by the trials so far.
  void choose(const LinearEnd& end, const WeightSegment& weight);

  /// Allocates the operation's scratch memory, for `outputs` outputs at once and `weight_bytes` of
  /// weights, and rounds the rows unless they are bfloat16 already.
  Status prepare(const LinearEnd& end, int64_t outputs, size_t weight_bytes = 0);
  [[nodiscard]] uint8_t* weights() const noexcept { return weights_; }
  [[nodiscard]] bool has_library() const noexcept { return library_ != nullptr; }
  /// Tries the library's algorithms if that has not been done yet (linear_rows_trial.h). Those with
  /// our own kernel's bits are timed, as is our own kernel, which then computes this product.
  Status try_ways(const LinearEnd& end, const WeightSegment& weight);

  /// The library's sums of the outputs of `end`, or of their up matrix; false if the library does
  /// not support the product.
  bool sum(const LinearEnd& end, const WeightSegment& by, bool up);
  /// The epilogue after the library's sums.
  Status finish(const LinearEnd& end);
  /// The whole product by our own kernel. Fresh weights are written by the preceding kernel.
  Status multiply(const LinearEnd& end, const WeightSegment& weight, const WeightSegment* up,
                  bool fresh_weights);

 private:
  /// Whether the library's sums go where they belong.
  [[nodiscard]] bool direct(const LinearEnd& end) const;
  [[nodiscard]] MatrixProduct library_product(const LinearEnd& end, const WeightSegment& by,
                                              bool up) const;
  Status take_memory(const LinearEnd& end, int64_t outputs, size_t weight_bytes);
  void drop_library() noexcept;

  const OpContext& context_;
  DType type_;
  PackedRows x_;
  bool own_bits_;
  bool trial_ = false;   // the library is to be tried
  int64_t rounded_ = 0;  // rows, padding included
  MatrixProducts* library_;
  size_t workspace_bytes_ = 0;
  RoundedRows rows_ = {};
  float* sums_ = nullptr;
  float* ups_ = nullptr;
  uint8_t* weights_ = nullptr;
  uint8_t* workspace_ = nullptr;
};

}  // namespace gen::cuda
