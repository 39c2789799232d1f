// SPDX-License-Identifier: Apache-2.0
// mean_rows: y[i, :] = the mean of rows first[i] to last[i] of x; one element a thread, which sums
// its rows in their order, in double precision: the bits of the CPU engine.
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    mean_rows_kernel(ConstRowsView x, const int32_t* first, const int32_t* last, RowsView y) {
  after_predecessor();
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= y.rows * y.cols) return;
  const int64_t row = i / y.cols;
  const int64_t d = i % y.cols;
  double sum = 0.0;
  for (int64_t t = first[row]; t <= last[row]; ++t) {
    sum += static_cast<double>(x.data[t * x.stride + d]);
  }
  const double rows = last[row] - first[row] + 1;
  y.data[row * y.stride + d] = static_cast<float>(sum / rows);
}

}  // namespace

Status run(const OpContext& context, const engine::MeanRowsArgs& args) {
  return run_kernel(context, "mean_rows", mean_rows_kernel,
                    grid_of(args.y.rows * args.y.cols, kThreads), kThreads, 0, view(args.x),
                    pointer(args.first), pointer(args.last), view(args.y));
}

}  // namespace gen::cuda
