// SPDX-License-Identifier: Apache-2.0
// add: y[t, :] = a[t, :] + b[t, :]; one element a thread. y may be a or b. Exact to one rounding.
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) add_kernel(ConstRowsView a, ConstRowsView b, RowsView y) {
  after_predecessor();
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= y.rows * y.cols) return;
  const int64_t t = i / y.cols;
  const int64_t d = i % y.cols;
  y.data[t * y.stride + d] = a.data[t * a.stride + d] + b.data[t * b.stride + d];
}

}  // namespace

Status run(const OpContext& context, const engine::AddArgs& args) {
  return run_kernel(context, "add", add_kernel, grid_of(args.y.rows * args.y.cols, kThreads),
                    kThreads, 0, view(args.a), view(args.b), view(args.y));
}

}  // namespace gen::cuda
