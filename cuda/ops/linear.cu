// SPDX-License-Identifier: Apache-2.0
// linear: y[t, n] = act(sum_c x[t, c] W[n, c] (+ adapters) (+ bias[n])) (+ residual[t, n]), or
// gated.
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

/// The row, counted from the first, whose sum a lane has in the end.
GEN_DEVICE int32_t own_row() { return lane_of_warp() / 4; }

/// Adds what the lanes have, as (l, l ^ 16), (l, l ^ 8), (l, l ^ 4), (l, l ^ 2), (l, l ^ 1). A lane
/// keeps half of the rows at each of the first three steps, in the end own_row(); of a single row
/// all lanes have the sum.
GEN_DEVICE float sum_lanes(float (&sums)[kRows], int32_t n) {
  if (n == 1) {
    for (uint32_t apart = 16; apart > 0; apart /= 2) sums[0] += shuffle_xor(sums[0], apart);
    return sums[0];
  }
  GEN_UNROLL
  for (int32_t half = kRows / 2; half > 0; half /= 2) {
    const bool upper = (lane_of_warp() & (4 * half)) != 0;
    GEN_UNROLL
    for (int32_t j = 0; j < kRows / 2; ++j) {
      if (j >= half) continue;
      const float give = upper ? sums[j] : sums[j + half];
      const float keep = upper ? sums[j + half] : sums[j];
      sums[j] = keep + shuffle_xor(give, static_cast<uint32_t>(4 * half));
    }
  }
  float sum = sums[0] + shuffle_xor(sums[0], 2);
  return sum + shuffle_xor(sum, 1);
}

/// The sum of one output for row own_row() of `n` rows from `t` on.
template <typename Codec>
GEN_DEVICE float sum_rows(const ConstRowsView& x, const uint8_t* weight, int64_t t, int32_t n) {
  float sums[kRows];
  GEN_UNROLL
  for (int32_t j = 0; j < kRows; ++j) sums[j] = 0.0F;
  const auto cols = static_cast<int32_t>(x.cols);
  const float* const row = x.data + t * x.stride;
  for (int32_t c = lane_of_warp(); c < cols; c += 32) {
    const float w = Codec::at(weight + static_cast<int64_t>(c / Codec::kElements) * Codec::kBytes,
                              c % Codec::kElements);
    GEN_UNROLL
    for (int32_t j = 0; j < kRows; ++j) {
      if (j < n) sums[j] = multiply_add(row[j * x.stride + c], w, sums[j]);
    }
  }
  return sum_lanes(sums, n);
}

template <typename Codec, bool kGated>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    linear_kernel(LinearView of, const uint8_t* weight, const uint8_t* up_weight) {
  const int64_t output = int64_t{block_x()} * kWarps + warp_of_block();
  if (output >= of.rows) return;
  const int64_t first = int64_t{block_y()} * kRows;
  const int64_t left = of.y.rows - first;
  const int32_t n = left < kRows ? static_cast<int32_t>(left) : kRows;
  float sum = sum_rows<Codec>(of.x, weight + static_cast<size_t>(output) * of.row_bytes, first, n);
  float up = 0.0F;
  if constexpr (kGated) {
    up = sum_rows<Codec>(of.x, up_weight + static_cast<size_t>(output) * of.row_bytes, first, n);
  }
  if (lane_of_warp() % 4 != 0 || own_row() >= n) return;
  const int64_t t = first + own_row();
  const int64_t column = of.first_row + output;
  const float* const u = of.u.data != nullptr ? of.u.data + t * of.u.stride : nullptr;
  sum = add_adapters(of.low_rank, u, t, kGated ? 0 : -1, column, sum);
  if (of.bias != nullptr) sum = sum + of.bias[column];
  if constexpr (kGated) {
    up = add_adapters(of.low_rank, u, t, 1, column, up);
    if (of.bias != nullptr) up = up + of.bias[of.rows + column];
    sum = gated(of.activation, sum, up);
  } else {
    sum = activated(of.activation, sum);
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
