// SPDX-License-Identifier: Apache-2.0
// select_rows: y[i, :] = x[rows[i], :]; one element a thread.
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    select_rows_kernel(ConstRowsView x, const int32_t* rows, RowsView y) {
  after_predecessor();
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= y.rows * y.cols) return;
  const int64_t t = i / y.cols;
  const int64_t d = i % y.cols;
  y.data[t * y.stride + d] = x.data[rows[t] * x.stride + d];
}

}  // namespace

Status run(const OpContext& context, const engine::SelectRowsArgs& args) {
  return run_kernel(context, "select_rows", select_rows_kernel,
                    grid_of(args.y.rows * args.y.cols, kThreads), kThreads, 0, view(args.x),
                    pointer(args.rows), view(args.y));
}

}  // namespace gen::cuda
