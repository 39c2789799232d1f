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

/// Lanes of a sum of squares: column d belongs to lane d % kSquareLanes, columns ascending.
constexpr int32_t kSquareLanes = 16;

/// A lane's sum of the squares of `n` elements of x, `first` and every kApart-th behind it.
template <int32_t kApart>
GEN_DEVICE float sum_squares(const Shared<float>& x, int32_t first, int32_t n) {
  constexpr int32_t kAtOnce = 16;
  float squares = 0.0F;
  int32_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce, first += kAtOnce * kApart) {
    float values[kAtOnce];
    GEN_UNROLL
    for (int32_t k = 0; k < kAtOnce; ++k) values[k] = x[first + k * kApart];
    GEN_UNROLL
    for (int32_t k = 0; k < kAtOnce; ++k) squares = multiply_add(values[k], values[k], squares);
  }
  for (; i < n; ++i, first += kApart) {
    const float value = x[first];
    squares = multiply_add(value, value, squares);
  }
  return squares;
}

/// The factor of a row.
GEN_DEVICE float norm_factor(float squares, int32_t cols, float eps) {
  const float mean = squares / static_cast<float>(cols);
  return 1.0F / square_root(mean + eps);
}

/// The sum of squares of a row whose first `n_held` columns lie in `held`; a warp, its first lane.
GEN_DEVICE float sum_of_squares(const Shared<float>& held, int32_t n_held, const float* row,
                                int32_t cols) {
  float squares = 0.0F;
  const int32_t lane = lane_of_warp();
  if (lane < kSquareLanes) {
    const int32_t n = (n_held - lane + kSquareLanes - 1) / kSquareLanes;
    squares = sum_squares<kSquareLanes>(held, lane, n);
    for (int32_t d = lane + n * kSquareLanes; d < cols; d += kSquareLanes) {
      squares = multiply_add(row[d], row[d], squares);
    }
  }
  return sum_sixteen(squares);
}

/// Normalises row t; up to kThreads * kEach columns are held. `begin` is called before anything
/// other than w is read.
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
  const float factor = norm_factor(total[0], cols, of.eps);
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
