// SPDX-License-Identifier: Apache-2.0
// rope_angles: cs[t, i] = (cos, sin)(positions[t] * inv_freq[i]) * magnitude, one pair a thread.
// The product is made in double: in float it would be off by 1e-2 at position 1e5. The bits of the
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
  double sine = 0.0;
  double cosine = 0.0;
  sincos_of(static_cast<double>(positions[t]) * static_cast<double>(inv_freq[pair]), &sine,
            &cosine);
  float* const to = cs.data + t * cs.stride + 2 * pair;
  to[0] = static_cast<float>(cosine * static_cast<double>(magnitude));
  to[1] = static_cast<float>(sine * static_cast<double>(magnitude));
}

}  // namespace

Status run(const OpContext& context, const engine::RopeAnglesArgs& args) {
  return run_kernel(context, "rope_angles", rope_angles_kernel,
                    grid_of(args.cs.rows * (args.cs.cols / 2), kThreads), kThreads, 0,
                    pointer(args.inv_freq), pointer(args.positions), args.magnitude, view(args.cs));
}

}  // namespace gen::cuda
