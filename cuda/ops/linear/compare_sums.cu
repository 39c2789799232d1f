// SPDX-License-Identifier: Apache-2.0
// See compare_sums.h.
//   Work    A thread compares one output of kRowsEach rows, which the block's y selects. Each warp
//           adds its counts with one atomic operation each.
#include "cuda/ops/linear/compare_sums.h"

#include "cuda/device/atomic.cuh"
#include "cuda/ops/device.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
constexpr int32_t kRowsEach = 16;

GEN_DEVICE uint32_t is_number(float x) { return (float_bits(x) >> 23 & 255U) != 255U ? 1U : 0U; }
GEN_DEVICE bool is_nan(float x) { return (float_bits(x) & 0x7FFFFFFFU) > 0x7F800000U; }

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) compare_sums_kernel(SumsView of, SumsFound* found) {
  after_predecessor();
  const int64_t output = int64_t{block_x()} * kThreads + thread_x();
  const int64_t first = int64_t{block_y()} * kRowsEach;
  uint32_t differ = 0;
  uint32_t telling = 0;
  for (int64_t t = first; t < first + kRowsEach && t < of.rows && output < of.outputs; ++t) {
    const float own = of.own[t * of.outputs + output];
    const float factor = of.factors != nullptr ? of.factors[t] : 1.0F;
    const float other = of.other[t * of.other_stride + output] * factor;
    const bool same = float_bits(own) == float_bits(other) || (is_nan(own) && is_nan(other));
    differ += same ? 0U : 1U;
    telling += (float_bits(own) & 15U) != 0 ? is_number(own) : 0U;
  }
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    differ += shuffle_xor(differ, apart);
    telling += shuffle_xor(telling, apart);
  }
  if (lane_of_warp() != 0) return;
  if (differ != 0) device::atomic_add(&found->differ, differ);
  if (telling != 0) device::atomic_add(&found->telling, telling);
}

}  // namespace

Status compare_sums(const OpContext& context, const SumsView& of, SumsFound* found) {
  device::Dim3 grid = grid_of(of.outputs, kThreads);
  grid.y = static_cast<unsigned>((of.rows + kRowsEach - 1) / kRowsEach);
  return run_kernel(context, "compare_sums", compare_sums_kernel, grid, kThreads, 0, of, found);
}

}  // namespace gen::cuda
