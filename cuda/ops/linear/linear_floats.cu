// SPDX-License-Identifier: Apache-2.0
// Products of float weights for few rows: sum_c x[t, c] W[n, c], W as F32, F16 or BF16.
//   x    [T, C] float32 of packed rows; W [N, C], rows padded with zeros to 16 bytes
//   A warp is all rows by four outputs; in a gated product these are two gates and two ups. Lane l
//   takes the pieces of 16 bytes l, l + 32, … of a row of weights, some rounds of 32 ahead, the
//   columns of a piece ascending, with a fused multiply-add each; the lanes' sums are added as
//   (l, l ^ 16), (l, l ^ 8), …. So the order depends only on C and the type's size, not on T or on
//   other rows.
//   Bytes: N C times the type's size, once for every eight rows; x is read from the L1 cache, once
//   for the outputs of a warp. One row has a kernel of its own (linear_float_row.cuh), and so have
//   F16 and BF16 with many outputs (linear_float_some.cuh).
//   Error: |sum| within (C / 32 + 13) roundings of sum_c |x w|, then one for each part of the end.
#include "cuda/ops/linear/linear_floats.cuh"

#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/linear/linear_float_row.cuh"
#include "cuda/ops/linear/linear_float_some.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kWarps = kThreads / 32;

/// Rows of weights per warp, and rounds that are loaded ahead: as many as registers allow without
/// reducing occupancy.
constexpr int32_t kSlots = 4;
constexpr int32_t kAhead = 2;

template <typename Type, int32_t kRows>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    linear_floats_kernel(PackedRows x, LinearEnd end, const uint8_t* weight,
                         const uint8_t* up_weight, size_t row_bytes) {
  constexpr int32_t kElements = Type::kElements;
  const int32_t outputs = end.gated ? kSlots / 2 : kSlots;
  const int64_t first_output = (int64_t{block_x()} * kWarps + warp_of_block()) * outputs;
  if (first_output >= end.rows) return;
  const uint8_t* from[static_cast<size_t>(kSlots)];
  GEN_UNROLL
  for (int32_t slot = 0; slot < kSlots; ++slot) {
    int64_t output = first_output + (end.gated ? slot / 2 : slot);
    if (output >= end.rows) output = first_output;  // its sum is not used
    from[slot] = (end.gated && slot % 2 != 0 ? up_weight : weight) +
                 static_cast<size_t>(output) * row_bytes + lane_of_warp() * 16;
  }
  const auto cols = static_cast<int32_t>(x.cols);
  const int32_t pieces = (cols + kElements - 1) / kElements;
  device::UInt4 next[static_cast<size_t>(kAhead)][static_cast<size_t>(kSlots)];
  GEN_UNROLL
  for (int32_t i = 0; i < kAhead; ++i) {
    if (i * 32 + lane_of_warp() >= pieces) continue;
    GEN_UNROLL
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      next[i][slot] = device::load_once16(from[slot] + i * 512);
    }
  }
  after_predecessor();

  const int64_t first = int64_t{block_y()} * kMatvecRows;
  const int64_t left = end.y.rows - first;
  const int32_t n = left < kRows ? static_cast<int32_t>(left) : kRows;
  const uint8_t* const rows = x.data + static_cast<size_t>(first) * x.at.bytes;
  float sums[static_cast<size_t>(kRows * kSlots)] = {};
  for (int32_t round = 0; round * 32 < pieces; round += kAhead) {
    GEN_UNROLL
    for (int32_t i = 0; i < kAhead; ++i) {
      const int32_t piece = (round + i) * 32 + lane_of_warp();
      if (piece >= pieces) continue;
      float w[static_cast<size_t>(kSlots)][static_cast<size_t>(kElements)];
      GEN_UNROLL
      for (int32_t slot = 0; slot < kSlots; ++slot) {
        Type::decode(next[i][slot], w[slot]);
        if (piece + kAhead * 32 < pieces) {
          next[i][slot] = device::load_once16(from[slot] + (round + i + kAhead) * 512);
        }
      }
      const int32_t column = piece * kElements;
      GEN_UNROLL
      for (int32_t j = 0; j < kRows; ++j) {
        // Missing rows repeat the first one.
        const size_t row = static_cast<size_t>(j < n ? j : 0) * x.at.bytes;
        float values[static_cast<size_t>(kElements)];
        load_elements<kElements>(reinterpret_cast<const float*>(rows + row) + column, cols - column,
                                 values);
        GEN_UNROLL
        for (int32_t slot = 0; slot < kSlots; ++slot) {
          float& sum = sums[j * kSlots + slot];
          sum = add_products(values, w[slot], sum);
        }
      }
    }
  }
  const float sum = sum_lanes(sums);
  constexpr int32_t kLanes = 32 / (kRows * kSlots);  // that have the same sum
  const float up = shuffle_xor(sum, kLanes);
  const int32_t number = lane_of_warp() / kLanes;
  const int32_t row = number / kSlots;
  const int32_t slot = number % kSlots;
  const int64_t output = first_output + (end.gated ? slot / 2 : slot);
  if (lane_of_warp() % kLanes != 0 || row >= n || output >= end.rows) return;
  if (end.gated && slot % 2 != 0) return;
  finish_many(end, first + row, output, sum, up);
}

template <typename Type>
Status launch_floats(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                     const WeightSegment& weight, const WeightSegment* up, const RowNorm& norm) {
  const auto launch = [&](auto* kernel) {
    device::Dim3 grid = grid_of(weight.rows, kWarps * kSlots / (end.gated ? 2 : 1));
    grid.y = static_cast<unsigned>((end.y.rows + kMatvecRows - 1) / kMatvecRows);
    return run_kernel(context, "linear", kernel, grid, kThreads, 0, x, end, weight.data,
                      up != nullptr ? up->data : nullptr, weight.row_bytes);
  };
  if (end.y.rows == 1) return launch_float_row<Type>(context, x, end, weight, up, norm);
  if constexpr (Type::kElements == 8) {
    const SomeView some = {x, end, weight.data, up != nullptr ? up->data : nullptr,
                           weight.row_bytes};
    if (end.y.rows <= 4) {
      const int32_t outputs = some_outputs<4>(context, end);
      if (outputs > 0) return launch_float_some<Type, 4>(context, some, outputs);
    } else if (end.y.rows <= kMatvecRows) {
      const int32_t outputs = some_outputs<8>(context, end);
      if (outputs > 0) return launch_float_some<Type, 8>(context, some, outputs);
    }
  }
  if (end.y.rows <= 4) return launch(linear_floats_kernel<Type, 4>);
  return launch(linear_floats_kernel<Type, kMatvecRows>);
}

}  // namespace

Status linear_floats(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                     const WeightSegment& weight, const WeightSegment* up, const RowNorm& norm) {
  switch (weight.type) {
    case DType::kF32:
      return launch_floats<WeightF32>(context, x, end, weight, up, norm);
    case DType::kF16:
      return launch_floats<WeightF16>(context, x, end, weight, up, norm);
    case DType::kBF16:
      return launch_floats<WeightBF16>(context, x, end, weight, up, norm);
    default:
      return error(Code::kUnsupported, "weights of type %s have no kernel",
                   dtype_name(weight.type));
  }
}

bool linear_floats_norm(const OpContext& context, const RowNorm& norm, int64_t cols, DType type) {
  const auto in_quads = [](const float* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; };
  return type != DType::kF32 && cols % WeightF16::kElements == 0 && row_is_staged(context, cols) &&
         in_quads(norm.x) && in_quads(norm.w);
}

}  // namespace gen::cuda
