// SPDX-License-Identifier: Apache-2.0
// gated: y[t, d] = act(gate[t, d / run]) * up[t, d]; one element a thread. y may be either, if run
// is 1. The bits of the CPU engine, see math.cuh.
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    gated_kernel(ConstRowsView gate, ConstRowsView up, RowsView y, int64_t run,
                 engine::Activation activation) {
  after_predecessor();
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= y.rows * y.cols) return;
  const int64_t t = i / y.cols;
  const int64_t d = i % y.cols;
  y.data[t * y.stride + d] =
      gated(activation, gate.data[t * gate.stride + d / run], up.data[t * up.stride + d]);
}

}  // namespace

Status run(const OpContext& context, const engine::GatedArgs& args) {
  return run_kernel(context, "gated", gated_kernel, grid_of(args.y.rows * args.y.cols, kThreads),
                    kThreads, 0, view(args.gate), view(args.up), view(args.y),
                    args.up.cols / args.gate.cols, args.activation);
}

}  // namespace gen::cuda
