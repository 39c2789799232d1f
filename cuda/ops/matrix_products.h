// SPDX-License-Identifier: Apache-2.0
// The interface of operations to a library of matrix products. cuda/engine/matrix_library.h
// implements it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/device/runtime.h"
#include "tensor/dtype.h"

namespace gen::cuda {

/// y[t, n] = sum_c x[t, c] w[n, c] (+ residual[t, n]), x and w of one type of 16 bits, the others
/// and the sum in float32. Strides in elements; all pointers of device memory, at multiples of 16.
struct MatrixProduct {
  DType type = DType::kF16;
  const void* w = nullptr;  // [outputs, cols]
  const void* x = nullptr;  // [rows, cols]
  float* y = nullptr;       // [rows, outputs]
  /// [rows, outputs] with the stride of y; may be y; null for none.
  const float* residual = nullptr;
  int64_t rows = 0;
  int64_t outputs = 0;
  int64_t cols = 0;
  int64_t w_stride = 0;
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  /// Only by an algorithm with the bits of our own kernel, as shown by trials: see ways().
  bool own_bits = false;
};

/// A library has several algorithms ("ways") for a product, whose order of additions is not
/// documented. If rows must have one result, this is found out by trials: the product is computed
/// by a way, all sums are compared with those of our own kernel, and judge() gets the result. Ways
/// with equal sums are timed, and so is our own kernel; settle() keeps the fastest.
class MatrixProducts {
 public:
  /// The result so far of the trials for products with `own_bits` and these sizes, strides and
  /// type, with or without a residual.
  enum class Ways {
    kToTry,  // multiply() uses the next way to be tried
    kFound,  // multiply() uses a way with our own kernel's bits
    kNone,   // no way has these bits, or our own kernel is faster
  };
  enum class Verdict { kSame, kDiffers, kUndecided };
  /// In place of milliseconds.
  static constexpr float kUntimed = -1.0F;

  virtual ~MatrixProducts() = default;
  /// The preferred workspace for a compute capability, 75 … 120; 0 without a library.
  [[nodiscard]] virtual size_t workspace_bytes(int32_t compute) = 0;
  /// Enqueues a product. False: it is not supported, and nothing was enqueued. A product with
  /// `own_bits` then does not use that way again.
  virtual bool multiply(const MatrixProduct& product, device::Stream stream) = 0;
  [[nodiscard]] virtual Ways ways(const MatrixProduct& product) = 0;
  /// Sets the result of the current trial, and the time of a way with the same sums. The next way
  /// follows. Trials end after a way with the same sums that could not be timed, and after a way
  /// that stays undecided many times.
  virtual void judge(const MatrixProduct& product, Verdict verdict, float ms) = 0;
  /// Ends trials in which a way had the same sums. From then on the fastest way is used; none if
  /// our own kernel, which takes `own_ms`, is as fast; the first if something was not timed.
  virtual void settle(const MatrixProduct& product, float own_ms) = 0;
};

}  // namespace gen::cuda
