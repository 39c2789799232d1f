// SPDX-License-Identifier: Apache-2.0
// What operations ask of a library of matrix products; cuda/engine/matrix_library.h is one.
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
  /// [rows, outputs] with the stride of y, which it may be; null where there is none.
  const float* residual = nullptr;
  int64_t rows = 0;
  int64_t outputs = 0;
  int64_t cols = 0;
  int64_t w_stride = 0;
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  /// Only by a way that has the bits of our own kernel, which trials tell: see ways().
  bool own_bits = false;
};

/// A library has several ways to make a product, and in which order they add is not documented. So
/// for rows that must have one result it is asked of the device: the product is made by a way, all
/// sums are compared with those of our own kernel, and judge() is told what that has shown. Ways
/// whose sums are the same are timed, and so is our own kernel; settle() keeps the fastest.
class MatrixProducts {
 public:
  /// What trials have shown so far of products with `own_bits` and these sizes, strides and type,
  /// with or without a residual.
  enum class Ways {
    kToTry,  // multiply() takes the one to be tried next
    kFound,  // and here one whose bits were our own kernel's
    kNone,   // none has them, or our own kernel is faster
  };
  enum class Verdict { kSame, kDiffers, kUndecided };
  /// In place of milliseconds.
  static constexpr float kUntimed = -1.0F;

  virtual ~MatrixProducts() = default;
  /// What it likes to have on devices of a compute capability, 75 … 120; 0 where there is no
  /// library.
  [[nodiscard]] virtual size_t workspace_bytes(int32_t compute) = 0;
  /// Enqueues a product. False: it does not do this one, and nothing was enqueued. One with
  /// `own_bits` will then not be made by that way again.
  virtual bool multiply(const MatrixProduct& product, device::Stream stream) = 0;
  [[nodiscard]] virtual Ways ways(const MatrixProduct& product) = 0;
  /// What the trial of the way to be tried next has shown, and how long a product takes by one that
  /// gives the same. Then it is the turn of the way behind it; but one that gives the same and
  /// could not be timed is the last, and so is one that stays undecided many times.
  virtual void judge(const MatrixProduct& product, Verdict verdict, float ms) = 0;
  /// Ends a trial in which a way gave the same: the fastest is taken from here on, none where our
  /// own kernel, which takes `own_ms`, is as fast, and the first where something was not timed.
  virtual void settle(const MatrixProduct& product, float own_ms) = 0;
};

}  // namespace gen::cuda
