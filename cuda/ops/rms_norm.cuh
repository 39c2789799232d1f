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
  size_t shared_offset;  // of the columns that are held in dynamic shared memory
};
/// Bytes of it, for blocks that hold up to `most` columns.
constexpr size_t norm_shared(int64_t cols, int32_t most) noexcept {
  return static_cast<size_t>(cols < most ? cols : most) * sizeof(float);
}

/// The sum of squares of a row whose first `n_held` columns lie in `held`; the first warp.
GEN_DEVICE float sum_of_squares(const Shared<float>& held, int32_t n_held, const float* row,
                                int32_t cols) {
  constexpr int32_t kLanes = 16;
  constexpr int32_t kAtOnce = 16;  // elements of a virtual lane
  float squares = 0.0F;
  if (thread_x() < kLanes) {
    int32_t d = thread_x();
    for (; d + (kAtOnce - 1) * kLanes < n_held; d += kAtOnce * kLanes) {
      float x[kAtOnce];
      GEN_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) x[i] = held[d + i * kLanes];
      GEN_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) squares = multiply_add(x[i], x[i], squares);
    }
    for (; d < n_held; d += kLanes) {
      const float x = held[d];
      squares = multiply_add(x, x, squares);
    }
    for (; d < cols; d += kLanes) squares = multiply_add(row[d], row[d], squares);
  }
  return sum_sixteen(squares);
}

/// Row t, up to kThreads * kEach columns held. `begin` is called before anything but w is read.
template <int32_t kThreads, int32_t kEach, typename Begin>
GEN_DEVICE void norm_row(const NormView& of, int64_t t, const Begin& begin) {
  GEN_SHARED(float, total, 1);
  constexpr int32_t kHeld = kThreads * kEach;
  const auto cols = static_cast<int32_t>(of.x.cols);
  const int32_t n_held = cols < kHeld ? cols : kHeld;
  const Shared<float> held = dynamic_shared<float>(of.shared_offset, static_cast<size_t>(n_held));
  float weights[static_cast<size_t>(kEach)];
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t d = i * kThreads + thread_x();
    weights[i] = d < cols ? of.w[d] : 0.0F;
  }
  begin();
  const float* const row = of.x.data + t * of.x.stride;
  float own[static_cast<size_t>(kEach)];
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t d = i * kThreads + thread_x();
    own[i] = d < cols ? row[d] : 0.0F;
  }
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t d = i * kThreads + thread_x();
    if (d < cols) held[d] = own[i];
  }
  sync_threads();
  if (warp_of_block() == 0) {
    const float squares = sum_of_squares(held, n_held, row, cols);
    if (thread_x() == 0) total[0] = squares;
  }
  sync_threads();
  const float mean = total[0] / static_cast<float>(cols);
  const float factor = 1.0F / square_root(mean + of.eps);
  uint8_t* to = nullptr;
  if (of.packed.data != nullptr) {
    to = of.packed.data + static_cast<size_t>(t) * of.packed.at.bytes;
  }
  const bool forms = to != nullptr && has_forms(of.packed);
  const auto put = [&](int32_t d, float value) {
    if (of.y.data != nullptr) of.y.data[t * of.y.stride + d] = value;
    if (to != nullptr) put_column(to, of.packed.bf16, d, value);
  };
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t d = i * kThreads + thread_x();
    if (d >= cols) continue;
    const float value = own[i] * factor * weights[i];
    put(d, value);
    if (forms) held[d] = value;
  }
  for (int32_t d = kHeld + thread_x(); d < cols; d += kThreads) put(d, row[d] * factor * of.w[d]);
  if (!forms) return;
  sync_threads();
  quantise_columns(of.packed, t, 0, cols, [&](int32_t d) -> float {
    if (d >= kHeld) return reinterpret_cast<const float*>(to)[d];
    return held[d];
  });
}

}  // namespace gen::cuda
