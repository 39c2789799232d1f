// SPDX-License-Identifier: Apache-2.0
// layer_norm: y[t, d] = (x[t, d] - mean) / sqrt(variance + eps) * w[d] + b[d], as rows, packed, or
// both, with mean and variance of each of the `groups` groups of a row's columns.
//   A block is a row. Each of its first kGroupsAtOnce warps sums a group over sixteen virtual lanes
//   in ascending order; the lanes are added in a fixed tree. The bits are those of the CPU. All
//   threads write. Shared memory holds the row up to kHeld columns, so that memory is read once.
#include <algorithm>

#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
constexpr int32_t kGroupsAtOnce = kThreads / 32;
constexpr int32_t kLanes = 16;
constexpr int32_t kHeld = 8192;

struct LayerNormView {
  ConstRowsView x;
  const float* w;
  const float* b;
  float eps;
  int32_t group;  // columns of one
  bool centred;
  RowsView y;
  PackedRows packed;
};

/// The sum over columns [first, first + n); `take` adds an element to a sum. Called by a warp; the
/// result is in lane 0. Many elements are loaded at once.
template <typename Read, typename Take>
GEN_DEVICE float sum_of(int32_t first, int32_t n, const Read& read, const Take& take) {
  constexpr int32_t kAtOnce = 16;
  const int32_t lane = lane_of_warp();
  const int32_t end = first + n;
  float sum = 0.0F;
  int32_t d = first + lane;
  if (lane >= kLanes) d = end;
  for (; d + (kAtOnce - 1) * kLanes < end; d += kAtOnce * kLanes) {
    float values[kAtOnce];
    GEN_UNROLL
    for (int32_t k = 0; k < kAtOnce; ++k) values[k] = read(d + k * kLanes);
    GEN_UNROLL
    for (int32_t k = 0; k < kAtOnce; ++k) sum = take(sum, values[k]);
  }
  for (; d < end; d += kLanes) sum = take(sum, read(d));
  return sum_sixteen(sum);
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) layer_norm_kernel(LayerNormView of) {
  GEN_SHARED(float, means, kGroupsAtOnce);
  GEN_SHARED(float, factors, kGroupsAtOnce);
  after_predecessor();
  const int64_t t = block_x();
  const auto cols = static_cast<int32_t>(of.x.cols);
  const float* const row = of.x.data + t * of.x.stride;
  const int32_t n_held = cols < kHeld ? cols : kHeld;
  const Shared<float> held = dynamic_shared<float>(0, static_cast<size_t>(n_held));
  for (int32_t d = thread_x(); d < n_held; d += kThreads) held[d] = row[d];
  sync_threads();
  const auto read = [&](int32_t d) -> float {
    if (d >= n_held) return row[d];
    return held[d];
  };
  uint8_t* to = nullptr;
  if (of.packed.data != nullptr) {
    to = of.packed.data + static_cast<size_t>(t) * of.packed.at.bytes;
  }
  for (int32_t first = 0; first < cols; first += kGroupsAtOnce * of.group) {
    const int32_t warp = warp_of_block();
    const int32_t own = first + warp * of.group;
    if (own < cols) {
      float mean = 0.0F;
      if (of.centred) {
        const float sum =
            sum_of(own, of.group, read, [](float all, float x) -> float { return all + x; });
        mean = shuffle(sum, 0) / static_cast<float>(of.group);
      }
      const float squares = sum_of(own, of.group, read, [mean](float all, float x) -> float {
        const float centred = x - mean;
        return multiply_add(centred, centred, all);
      });
      if (lane_of_warp() == 0) {
        means[warp] = mean;
        factors[warp] = 1.0F / square_root(squares / static_cast<float>(of.group) + of.eps);
      }
    }
    sync_threads();
    const int32_t behind = first + kGroupsAtOnce * of.group;
    const int32_t end = behind < cols ? behind : cols;
    for (int32_t d = first + thread_x(); d < end; d += kThreads) {
      const int32_t group = (d - first) / of.group;
      float value = (read(d) - means[group]) * factors[group];
      if (of.w != nullptr && of.b != nullptr) {
        value = multiply_add(value, of.w[d], of.b[d]);
      } else if (of.w != nullptr) {
        value = value * of.w[d];
      } else if (of.b != nullptr) {
        value = value + of.b[d];
      }
      if (of.y.data != nullptr) of.y.data[t * of.y.stride + d] = value;
      if (to != nullptr) put_column(to, of.packed.bf16, d, value);
    }
    sync_threads();
  }
  if (to == nullptr || !has_forms(of.packed)) return;
  quantise_columns(of.packed, t, 0, cols,
                   [&](int32_t d) -> float { return reinterpret_cast<const float*>(to)[d]; });
}

}  // namespace

Status run(const OpContext& context, const engine::LayerNormArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  const LayerNormView of = {view(args.x),
                            pointer(args.w),
                            pointer(args.b),
                            args.eps,
                            static_cast<int32_t>(args.x.cols / args.groups),
                            args.centred,
                            view(args.y),
                            packed_rows(args.packed)};
  return run_kernel(context, "layer_norm", layer_norm_kernel, grid, kThreads,
                    static_cast<size_t>(std::min<int64_t>(args.x.cols, kHeld)) * sizeof(float), of);
}

}  // namespace gen::cuda
