// SPDX-License-Identifier: Apache-2.0
// rms_norm: y[t, d] = x[t, d] / sqrt(mean_d(x[t, :]^2) + eps) * w[d], as rows, packed, or both.
//   A block is a row, which threads hold in registers and shared memory up to 8192 columns: all of
//   it is on its way at once, w even before the predecessor ends, and memory is read once. Squares
//   are summed over sixteen virtual lanes in ascending order and added in a fixed tree, as on the
//   CPU, whose bits these are.
#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 512;
constexpr int32_t kEach = 16;
constexpr int32_t kHeld = kThreads * kEach;  // columns
constexpr int32_t kLanes = 16;
constexpr int32_t kAtOnce = 16;  // elements of a virtual lane

/// The sum of squares of a row whose first columns lie in `held`; the first warp.
GEN_DEVICE float sum_of_squares(const Shared<float>& held, const float* row, int32_t cols) {
  float squares = 0.0F;
  if (thread_x() < kLanes) {
    int32_t d = thread_x();
    const int32_t end = cols < kHeld ? cols : kHeld;
    for (; d + (kAtOnce - 1) * kLanes < end; d += kAtOnce * kLanes) {
      float x[kAtOnce];
      GEN_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) x[i] = held[d + i * kLanes];
      GEN_UNROLL
      for (int32_t i = 0; i < kAtOnce; ++i) squares = multiply_add(x[i], x[i], squares);
    }
    for (; d < end; d += kLanes) {
      const float x = held[d];
      squares = multiply_add(x, x, squares);
    }
    for (; d < cols; d += kLanes) squares = multiply_add(row[d], row[d], squares);
  }
  return sum_sixteen(squares);
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    rms_norm_kernel(ConstRowsView x, const float* w, float eps, RowsView y, PackedRows packed) {
  GEN_SHARED(float, total, 1);
  const auto cols = static_cast<int32_t>(x.cols);
  const Shared<float> held =
      dynamic_shared<float>(0, static_cast<size_t>(cols < kHeld ? cols : kHeld));
  float weights[kEach];
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t d = i * kThreads + thread_x();
    weights[i] = d < cols ? w[d] : 0.0F;
  }
  after_predecessor();
  const int64_t t = block_x();
  const float* const row = x.data + t * x.stride;
  float own[kEach];
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
    const float squares = sum_of_squares(held, row, cols);
    if (thread_x() == 0) total[0] = squares;
  }
  sync_threads();
  const float mean = total[0] / static_cast<float>(cols);
  const float factor = 1.0F / square_root(mean + eps);
  float* to = nullptr;
  if (packed.data != nullptr) {
    to = reinterpret_cast<float*>(packed.data + static_cast<size_t>(t) * packed.at.bytes);
  }
  const bool forms = to != nullptr && has_forms(packed);
  const auto put = [&](int32_t d, float value) {
    if (y.data != nullptr) y.data[t * y.stride + d] = value;
    if (to != nullptr) to[d] = value;
  };
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t d = i * kThreads + thread_x();
    if (d >= cols) continue;
    const float value = own[i] * factor * weights[i];
    put(d, value);
    if (forms) held[d] = value;
  }
  for (int32_t d = kHeld + thread_x(); d < cols; d += kThreads) put(d, row[d] * factor * w[d]);
  if (!forms) return;
  sync_threads();
  quantise_columns(packed, t, 0, cols, [&](int32_t d) -> float {
    if (d >= kHeld) return to[d];
    return held[d];
  });
}

}  // namespace

Status run(const OpContext& context, const engine::RmsNormArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  const int64_t held = args.x.cols < kHeld ? args.x.cols : kHeld;
  return run_kernel(context, "rms_norm", rms_norm_kernel, grid, kThreads,
                    static_cast<size_t>(held) * sizeof(float), view(args.x), pointer(args.w),
                    args.eps, view(args.y), packed_rows(args.packed));
}

}  // namespace gen::cuda
