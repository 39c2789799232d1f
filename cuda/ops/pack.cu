// SPDX-License-Identifier: Apache-2.0
// pack: rows into the form that products read, which is float32: a copy to rows that begin at
// multiples of 64 bytes. One element a thread.
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) pack_kernel(ConstRowsView x, RowsView y) {
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= x.rows * x.cols) return;
  const int64_t t = i / x.cols;
  const int64_t d = i % x.cols;
  y.data[t * y.stride + d] = x.data[t * x.stride + d];
}

}  // namespace

Status run(const OpContext& context, const engine::PackArgs& args) {
  return run_kernel(context, "pack", pack_kernel, grid_of(args.x.rows * args.x.cols, kThreads),
                    kThreads, 0, view(args.x), view(args.y));
}

}  // namespace gen::cuda
