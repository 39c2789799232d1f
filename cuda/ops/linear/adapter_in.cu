// SPDX-License-Identifier: Apache-2.0
// adapter_in: u[t, site.u + r] = scale * sum_c A[r, c] x[t, c] for all sites and all adapters of
// row t's mix. A block is a row; its warps take ranks in turn. Sums use sixteen virtual lanes and a
// fixed tree, with the CPU's bits. Nothing is written for rows without adapters.
#include "cuda/ops/device.cuh"
#include "cuda/ops/low_rank.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    adapter_in_kernel(ConstRowsView x, LowRankView low_rank, RowsView u) {
  after_predecessor();
  const int64_t t = block_x();
  const engine::LowRankMix* const mixes = mixes_of(low_rank, t);
  if (mixes == nullptr) return;
  const float* const row = x.data + t * x.stride;
  int32_t turn = 0;
  for (int32_t s = 0; s < low_rank.n_sites; ++s) {
    const engine::LowRankSite& site = low_rank.sites[s];
    const engine::LowRankMix& here = mixes[site.site];
    float* to = u.data + t * u.stride + site.u;
    for (int32_t i = 0; i < here.n; ++i) {
      const engine::LowRankPart& part = here.parts[i];
      const float* const a = at(part.a);
      for (int32_t r = 0; r < part.rank; ++r, ++turn) {
        if (turn % (kThreads / 32) != warp_of_block()) continue;
        float sum = 0.0F;
        if (lane_of_warp() < 16) {
          for (int64_t c = lane_of_warp(); c < x.cols; c += 16) {
            sum = multiply_add(a[r * x.cols + c], row[c], sum);
          }
        }
        sum = sum_sixteen(sum);
        if (lane_of_warp() == 0) to[r] = part.scale * sum;
      }
      to += part.rank;
    }
  }
}

}  // namespace

Status run(const OpContext& context, const engine::AdapterInArgs& args) {
  if (!args.low_rank.table) return {};
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  return run_kernel(context, "adapter_in", adapter_in_kernel, grid, kThreads, 0, view(args.x),
                    view(args.low_rank), view(args.u));
}

}  // namespace gen::cuda
