// SPDX-License-Identifier: Apache-2.0
// position_scale: y[t, :] = x[t, :] times the factor of the row's position; one element a thread.
// y may be x. Exact to one rounding.
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    position_scale_kernel(ConstRowsView x, const int32_t* positions, const float* factors,
                          int32_t n_factors, int32_t every, RowsView y) {
  after_predecessor();
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= y.rows * y.cols) return;
  const int64_t t = i / y.cols;
  const int64_t d = i % y.cols;
  const int32_t of_position = positions[t] / every;
  const float factor = factors[of_position < n_factors ? of_position : n_factors - 1];
  y.data[t * y.stride + d] = x.data[t * x.stride + d] * factor;
}

}  // namespace

Status run(const OpContext& context, const engine::PositionScaleArgs& args) {
  return run_kernel(context, "position_scale", position_scale_kernel,
                    grid_of(args.y.rows * args.y.cols, kThreads), kThreads, 0, view(args.x),
                    pointer(args.positions), pointer(args.factors), args.n_factors, args.every,
                    view(args.y));
}

}  // namespace gen::cuda
