// SPDX-License-Identifier: Apache-2.0
// rms_norm: y[t, d] = x[t, d] / sqrt(mean_d(x[t, :]^2) + eps) * w[d], as rows, packed, or both.
//   A block is a row, held in registers and shared memory up to 8192 columns: all of it is loaded
//   at once, w even before the predecessor ends, and memory is read once. Squares are summed over
//   sixteen virtual lanes in ascending order; the lanes are added in a fixed tree. The bits are
//   those of the CPU.
#include "cuda/ops/norm/rms_norm.cuh"

#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 512;
constexpr int32_t kEach = 16;

template <int32_t kOf>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kOf) rms_norm_kernel(NormView of) {
  norm_row<kOf, kEach>(of, block_x(), [] {
    // The code above reads only w.
    after_predecessor();
  });
}

}  // namespace

// One row is fastest with many threads. With many rows, blocks are as small as their columns allow,
// so that more rows are in flight: each block stalls on its sum of squares.
Status run(const OpContext& context, const engine::RmsNormArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  const NormView of = {view(args.x), pointer(args.w),          args.eps,
                       view(args.y), packed_rows(args.packed), 0};
  const auto launch = [&]<int32_t kOf>() {
    return run_kernel(context, "rms_norm", rms_norm_kernel<kOf>, grid, kOf,
                      norm_shared(args.x.cols, kOf * kEach), of);
  };
  const bool many = args.x.rows > context.processors;
  if (many && args.x.cols <= 128 * kEach) return launch.operator()<128>();
  if (many && args.x.cols <= 256 * kEach) return launch.operator()<256>();
  return launch.operator()<kThreads>();
}

}  // namespace gen::cuda
