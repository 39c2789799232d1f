// SPDX-License-Identifier: Apache-2.0
// A product of rows with weights of 16 bits, step by step: by a library's sums and what comes after
// them, or by our own kernel. Where a row must have one result the library makes the sums only by a
// way that trials have shown to have our own kernel's bits; its rows are filled up to one of a few
// numbers then, since each number is tried. Implemented in linear_float_rows.cu.
#pragma once

#include "cuda/ops/linear/linear_float_rows.cuh"

namespace gen::cuda {

class RowsProduct {
 public:
  /// `own`: with our own kernel's bits.
  RowsProduct(const OpContext& context, DType type, const PackedRows& x, bool own) noexcept;

  /// Comes first where `own`: who makes the product, by what trials have shown so far.
  void choose(const LinearEnd& end, const WeightSegment& weight);

  /// Takes the operation's scratch memory, for `outputs` outputs at once and weights of
  /// `weight_bytes` beside them, and rounds the rows, unless they are bfloat16 already.
  Status prepare(const LinearEnd& end, int64_t outputs, size_t weight_bytes = 0);
  [[nodiscard]] uint8_t* weights() const noexcept { return weights_; }
  [[nodiscard]] bool has_library() const noexcept { return library_ != nullptr; }
  /// Tries the library's ways, if that is still to be done (linear_rows_trial.h), and times those
  /// that have our own kernel's bits and our own kernel; this product is our own kernel's then.
  Status try_ways(const LinearEnd& end, const WeightSegment& weight);

  /// The library's sums of the outputs of `end`, or of what they gate; false: it does not do them.
  bool sum(const LinearEnd& end, const WeightSegment& by, bool up);
  /// After them.
  Status finish(const LinearEnd& end);
  /// The whole by our own kernel. Fresh weights are those that the kernel before it writes.
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
  int64_t rounded_ = 0;  // rows with those that fill them up
  MatrixProducts* library_;
  size_t workspace_bytes_ = 0;
  RoundedRows rows_ = {};
  float* sums_ = nullptr;
  float* ups_ = nullptr;
  uint8_t* weights_ = nullptr;
  uint8_t* workspace_ = nullptr;
};

}  // namespace gen::cuda
