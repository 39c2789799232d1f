// SPDX-License-Identifier: Apache-2.0
// A row of rms_norm by one block of threads; see rms_norm.cu.
#pragma once

#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/context.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"

namespace gen::cuda {

struct NormView {
  ConstRowsView x;
  const float* w;
  float eps;
  RowsView y;
  PackedRows packed;
};

/// Row t.
template <int32_t kThreads>
GEN_DEVICE void norm_row(const NormView& of, int64_t t) {
  GEN_SHARED(float, total, 1);
  const float* const row = of.x.data + t * of.x.stride;
  if (warp_of_block() == 0) {
    float squares = 0.0F;
    if (thread_x() < 16) {
      for (int64_t d = thread_x(); d < of.x.cols; d += 16)
        squares = multiply_add(row[d], row[d], squares);
    }
    squares = sum_sixteen(squares);
    if (thread_x() == 0) total[0] = squares;
  }
  sync_threads();
  const float mean = total[0] / static_cast<float>(of.x.cols);
  const float factor = 1.0F / square_root(mean + of.eps);
  float* to = nullptr;
  if (of.packed.data != nullptr) {
    to = reinterpret_cast<float*>(of.packed.data + static_cast<size_t>(t) * of.packed.at.bytes);
  }
  for (int64_t d = thread_x(); d < of.x.cols; d += kThreads) {
    const float value = row[d] * factor * of.w[d];
    if (of.y.data != nullptr) of.y.data[t * of.y.stride + d] = value;
    if (to != nullptr) to[d] = value;
  }
  if (to == nullptr || !has_forms(of.packed)) return;
  sync_threads();
  quantise_row(of.packed, t);
}

}  // namespace gen::cuda
