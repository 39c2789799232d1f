// SPDX-License-Identifier: Apache-2.0
// Products of float weights for few rows: sum_c x[t, c] W[n, c], W as F32, F16 or BF16.
//   x    [T, C] float32 of packed rows; W [N, C], rows padded with zeros to 16 bytes
//   A warp is one output of up to eight rows. Lane l takes the pieces of 16 bytes l, l + 32, … of
//   the row, the columns of a piece ascending, with a fused multiply-add each; the lanes' sums are
//   added as (l, l ^ 16), (l, l ^ 8), …. So the order depends on C and the type's size alone:
//   neither on T, nor on the rows beside.
//   Bytes: N C times the type's size, once for every eight rows; x comes from the first cache.
//   Error: |sum| within (C / 32 + 13) roundings of sum_c |x w|, then one for each part of the end.
#include "cuda/ops/linear_end.cuh"
#include "cuda/ops/linear_floats.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kWarps = kThreads / 32;
constexpr int32_t kRows = kMatvecRows;

/// The sum of one output for row own_row() of `n` rows from `t` on.
template <typename Type>
GEN_DEVICE float sum_rows(const PackedRows& x, const uint8_t* weight, int64_t t, int32_t n) {
  constexpr int32_t kElements = Type::kElements;
  float sums[kRows];
  GEN_UNROLL
  for (int32_t j = 0; j < kRows; ++j) sums[j] = 0.0F;
  const auto cols = static_cast<int32_t>(x.cols);
  const uint8_t* const rows = x.data + static_cast<size_t>(t) * x.at.bytes;
  const auto load = [&](int32_t first) {
    return device::load_once16(weight + static_cast<size_t>(first) * (16 / kElements));
  };
  int32_t first = lane_of_warp() * kElements;
  device::UInt4 next = {};
  if (first < cols) next = load(first);
  after_predecessor();
  for (; first < cols; first += 32 * kElements) {
    const device::UInt4 now = next;
    if (first + 32 * kElements < cols) next = load(first + 32 * kElements);
    add_piece<Type>(now, rows, x.at.bytes, n, first, cols, sums);
  }
  return sum_lanes(sums, n);
}

template <typename Type>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    linear_floats_kernel(PackedRows x, LinearEnd end, const uint8_t* weight,
                         const uint8_t* up_weight, size_t row_bytes) {
  const int64_t output = int64_t{block_x()} * kWarps + warp_of_block();
  if (output >= end.rows) return;
  const int64_t first = int64_t{block_y()} * kRows;
  const int64_t left = end.y.rows - first;
  const int32_t n = left < kRows ? static_cast<int32_t>(left) : kRows;
  const size_t at = static_cast<size_t>(output) * row_bytes;
  const float sum = sum_rows<Type>(x, weight + at, first, n);
  float up = 0.0F;
  if (end.gated) up = sum_rows<Type>(x, up_weight + at, first, n);
  if (lane_of_warp() % 4 != 0 || own_row() >= n) return;
  finish_output(end, first + own_row(), output, sum, up);
}

template <typename Type>
Status launch_floats(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                     const WeightSegment& weight, const WeightSegment* up) {
  device::Dim3 grid = grid_of(weight.rows, kWarps);
  grid.y = static_cast<unsigned>((end.y.rows + kRows - 1) / kRows);
  return run_kernel(context, "linear", linear_floats_kernel<Type>, grid, kThreads, 0, x, end,
                    weight.data, up != nullptr ? up->data : nullptr, weight.row_bytes);
}

}  // namespace

Status linear_floats(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                     const WeightSegment& weight, const WeightSegment* up) {
  switch (weight.type) {
    case DType::kF32:
      return launch_floats<WeightF32>(context, x, end, weight, up);
    case DType::kF16:
      return launch_floats<WeightF16>(context, x, end, weight, up);
    case DType::kBF16:
      return launch_floats<WeightBF16>(context, x, end, weight, up);
    default:
      return error(Code::kUnsupported, "weights of type %s have no kernel",
                   dtype_name(weight.type));
  }
}

}  // namespace gen::cuda
