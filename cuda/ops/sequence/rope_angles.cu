// SPDX-License-Identifier: Apache-2.0
// rope_angles: cs[t, i] = (cos, sin)(positions[t] * inv_freq[i]) * magnitude, one pair a thread.
// The product is computed in double: in float its error is 1e-2 at position 1e5. Same bits as the
// CPU engine, see sincos_of().
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    rope_angles_kernel(const float* inv_freq, const int32_t* positions, float magnitude,
                       RowsView cs) {
  after_predecessor();
  const int64_t pairs = cs.cols / 2;
  const int64_t i = int64_t{block_x()} * kThreads + thread_x();
  if (i >= cs.rows * pairs) return;
  const int64_t t = i / pairs;
  const int64_t pair = i % pairs;
  write_angle(inv_freq, positions[t], magnitude, static_cast<int32_t>(pair),
              cs.data + t * cs.stride);
}

}  // namespace

Status run(const OpContext& context, const engine::RopeAnglesArgs& args) {
  return run_kernel(context, "rope_angles", rope_angles_kernel,
                    grid_of(args.cs.rows * (args.cs.cols / 2), kThreads), kThreads, 0,
                    pointer(args.inv_freq), pointer(args.positions), args.magnitude, view(args.cs));
}

}  // namespace gen::cuda
