// SPDX-License-Identifier: Apache-2.0
// linear: y[t, n] = act(sum_c x[t, c] W[n, c] (+ adapters) (+ bias[n])) (+ residual[t, n]), or gated.
//   x    [T, C] packed float32 rows; W [N, C] as in the file, decoded in registers
//   A warp is one output of up to eight rows. Lane l takes columns l, l + 32, … ascending with a
//   fused multiply-add each; the lanes' sums are added as (l, l ^ 16), (l, l ^ 8), … So the order
//   depends on C alone: neither on T, nor on the rows beside, nor on the format.
//   Error: |sum| within (C / 32 + 5) roundings of sum_c |x w|, then one for each part of the end.
#include "cuda/ops/device.cuh"
#include "cuda/ops/low_rank.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"
#include "cuda/ops/weight.h"
#include "cuda/ops/weights.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kWarps = kThreads / 32;
constexpr int32_t kRows = 8;  // of x that share a pass over a weight

struct LinearView {
  ConstRowsView x;
  const float* bias;
  engine::Activation activation;
  ConstRowsView residual;
  RowsView y;
  LowRankView low_rank;
  ConstRowsView u;
  int64_t rows;       // outputs of this segment
  int64_t first_row;  // its first one's place in the product
  size_t row_bytes;
};

/// Sums of one output for `n` rows from `t` on, in every lane.
template <typename Codec>
GEN_DEVICE void sum_rows(const ConstRowsView& x, const uint8_t* weight, int64_t t, int32_t n,
                         float (&sums)[kRows]) {
  GEN_UNROLL
  for (int32_t j = 0; j < kRows; ++j) sums[j] = 0.0F;
  for (int64_t c = lane_of_warp(); c < x.cols; c += 32) {
    const float w = Codec::at(weight + c / Codec::kElements * Codec::kBytes,
                              static_cast<int32_t>(c % Codec::kElements));
    GEN_UNROLL
    for (int32_t j = 0; j < kRows; ++j) {
      if (j < n) sums[j] = multiply_add(x.data[(t + j) * x.stride + c], w, sums[j]);
    }
  }
  GEN_UNROLL
  for (int32_t j = 0; j < kRows; ++j) {
    if (j >= n) continue;
    for (uint32_t apart = 16; apart > 0; apart /= 2) sums[j] += shuffle_xor(sums[j], apart);
  }
}

/// The sum that lane j keeps, of row t + j.
GEN_DEVICE float own_sum(const float (&sums)[kRows]) {
  float own = sums[0];
  GEN_UNROLL
  for (int32_t j = 1; j < kRows; ++j) own = lane_of_warp() == j ? sums[j] : own;
  return own;
}

template <typename Codec, bool kGated>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    linear_kernel(LinearView of, const uint8_t* weight, const uint8_t* up_weight) {
  const int64_t output = int64_t{block_x()} * kWarps + warp_of_block();
  if (output >= of.rows) return;
  const int64_t first = int64_t{block_y()} * kRows;
  const int64_t left = of.y.rows - first;
  const int32_t n = left < kRows ? static_cast<int32_t>(left) : kRows;
  float sums[kRows];
  sum_rows<Codec>(of.x, weight + static_cast<size_t>(output) * of.row_bytes, first, n, sums);
  float sum = own_sum(sums);
  float up = 0.0F;
  if constexpr (kGated) {
    sum_rows<Codec>(of.x, up_weight + static_cast<size_t>(output) * of.row_bytes, first, n, sums);
    up = own_sum(sums);
  }
  if (lane_of_warp() >= n) return;
  const int64_t t = first + lane_of_warp();
  const int64_t column = of.first_row + output;
  const float* const u = of.u.data != nullptr ? of.u.data + t * of.u.stride : nullptr;
  sum = add_adapters(of.low_rank, u, t, kGated ? 0 : -1, column, sum);
  if (of.bias != nullptr) sum = sum + of.bias[column];
  if constexpr (kGated) {
    up = add_adapters(of.low_rank, u, t, 1, column, up);
    if (of.bias != nullptr) up = up + of.bias[of.rows + column];
    sum = gated(of.activation, sum, up);
  } else {
    sum = activated(of.activation.kind, sum);
  }
  if (of.residual.data != nullptr) {
    sum = sum + of.residual.data[t * of.residual.stride + column];
  }
  of.y.data[t * of.y.stride + column] = sum;
}

}  // namespace

Status run(const OpContext& context, const engine::LinearArgs& args) {
  const auto& weight = static_cast<const DeviceWeight&>(*args.weight);
  const bool gated = weight.role() == engine::WeightRole::kGated;
  const std::vector<WeightSegment>& segments = weight.segments();
  const RowsView x = view(args.x);
  LinearView of = {{x.data, x.rows, x.cols, x.stride},
                   pointer(args.bias),
                   args.activation,
                   view(args.residual),
                   view(args.y),
                   view(args.low_rank),
                   view(args.u),
                   0,
                   0,
                   0};
  for (size_t i = 0; i < segments.size(); i += gated ? 2 : 1) {
    const WeightSegment& segment = segments[i];
    of.rows = segment.rows;
    of.first_row = segment.first_row;
    of.row_bytes = segment.row_bytes;
    device::Dim3 grid = grid_of(segment.rows, kWarps);
    grid.y = static_cast<unsigned>((args.y.rows + kRows - 1) / kRows);
    GEN_TRY(for_type(segment.type, [&](auto codec) {
      using Codec = decltype(codec);
      if (gated) {
        return run_kernel(context, "linear_gated", linear_kernel<Codec, true>, grid, kThreads, 0,
                          of, segment.data, segments[i + 1].data);
      }
      return run_kernel(context, "linear", linear_kernel<Codec, false>, grid, kThreads, 0, of,
                        segment.data, static_cast<const uint8_t*>(nullptr));
    }));
  }
  return {};
}

}  // namespace gen::cuda
