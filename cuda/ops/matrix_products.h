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
/// sums are compared with those of our own kernel, and judge() is told what that has shown.
class MatrixProducts {
 public:
  /// What trials have shown so far of products with `own_bits` and these sizes, strides and type,
  /// with or without a residual.
  enum class Ways {
    kToTry,  // multiply() takes the one to be tried next
    kFound,  // and here the one whose bits were our own kernel's
    kNone,   // none has them
  };
  enum class Verdict { kSame, kDiffers, kUndecided };

  virtual ~MatrixProducts() = default;
  /// What it likes to have on devices of a compute capability, 75 … 120; 0 where there is no
  /// library.
  [[nodiscard]] virtual size_t workspace_bytes(int32_t compute) = 0;
  /// Enqueues a product. False: it does not do this one, and nothing was enqueued. One with
  /// `own_bits` will then not be made by that way again.
  virtual bool multiply(const MatrixProduct& product, device::Stream stream) = 0;
  [[nodiscard]] virtual Ways ways(const MatrixProduct& product) = 0;
  /// What the trial of the way to be tried next has shown. A way that differs makes place for the
  /// one behind it; one that stays undecided many times is the last.
  virtual void judge(const MatrixProduct& product, Verdict verdict) = 0;
};

}  // namespace gen::cuda
