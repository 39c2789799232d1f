// SPDX-License-Identifier: Apache-2.0
// rms_norm: y[t, d] = x[t, d] / sqrt(mean_d(x[t, :]^2) + eps) * w[d], as rows, packed, or both.
//   A block is a row. Squares are summed over sixteen virtual lanes in ascending order and added in
//   a fixed tree, as on the CPU, whose bits these are.
#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    rms_norm_kernel(ConstRowsView x, const float* w, float eps, RowsView y, PackedRows packed) {
  after_predecessor();
  GEN_SHARED(float, total, 1);
  const int64_t t = block_x();
  const float* const row = x.data + t * x.stride;
  if (warp_of_block() == 0) {
    float squares = 0.0F;
    if (thread_x() < 16) {
      for (int64_t d = thread_x(); d < x.cols; d += 16)
        squares = multiply_add(row[d], row[d], squares);
    }
    squares = sum_sixteen(squares);
    if (thread_x() == 0) total[0] = squares;
  }
  sync_threads();
  const float mean = total[0] / static_cast<float>(x.cols);
  const float factor = 1.0F / square_root(mean + eps);
  float* to = nullptr;
  if (packed.data != nullptr) {
    to = reinterpret_cast<float*>(packed.data + static_cast<size_t>(t) * packed.at.bytes);
  }
  for (int64_t d = thread_x(); d < x.cols; d += kThreads) {
    const float value = row[d] * factor * w[d];
    if (y.data != nullptr) y.data[t * y.stride + d] = value;
    if (to != nullptr) to[d] = value;
  }
  if (to == nullptr || !has_forms(packed)) return;
  sync_threads();
  quantise_row(packed, t);
}

}  // namespace

Status run(const OpContext& context, const engine::RmsNormArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  return run_kernel(context, "rms_norm", rms_norm_kernel, grid, kThreads, 0, view(args.x),
                    pointer(args.w), args.eps, view(args.y), packed_rows(args.packed));
}

}  // namespace gen::cuda
