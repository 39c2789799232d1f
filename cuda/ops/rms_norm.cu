// SPDX-License-Identifier: Apache-2.0
// rms_norm: y[t, d] = x[t, d] / sqrt(mean_d(x[t, :]^2) + eps) * w[d], as rows, packed, or both.
//   A block is a row. Squares are summed over sixteen virtual lanes in ascending order and added in
//   a fixed tree, as on the CPU, whose bits these are.
#include "cuda/ops/ops_run.h"
#include "cuda/ops/rms_norm.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) rms_norm_kernel(NormView of) {
  after_predecessor();
  norm_row<kThreads>(of, block_x());
}

}  // namespace

Status run(const OpContext& context, const engine::RmsNormArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  const NormView of = {view(args.x), pointer(args.w), args.eps, view(args.y),
                       packed_rows(args.packed)};
  return run_kernel(context, "rms_norm", rms_norm_kernel, grid, kThreads, 0, of);
}

}  // namespace gen::cuda
