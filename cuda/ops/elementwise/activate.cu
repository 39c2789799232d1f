// SPDX-License-Identifier: Apache-2.0
// activate: y[t, :] = act(x[t, :]); one element a thread. y may be x. The bits of the CPU engine,
// see math.cuh.
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    activate_kernel(ConstRowsView x, RowsView y, engine::Activation activation) {
  after_predecessor();
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= y.rows * y.cols) return;
  const int64_t t = i / y.cols;
  const int64_t d = i % y.cols;
  y.data[t * y.stride + d] = activated(activation, x.data[t * x.stride + d]);
}

}  // namespace

Status run(const OpContext& context, const engine::ActivateArgs& args) {
  if (engine::is_gated_only(args.activation.kind)) {
    return error(Code::kUnsupported, "the activation is gated only");
  }
  return run_kernel(context, "activate", activate_kernel,
                    grid_of(args.y.rows * args.y.cols, kThreads), kThreads, 0, view(args.x),
                    view(args.y), args.activation);
}

}  // namespace gen::cuda
