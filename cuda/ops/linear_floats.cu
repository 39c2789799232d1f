// SPDX-License-Identifier: Apache-2.0
// Products of float weights for few rows: sum_c x[t, c] W[n, c], W as F32, F16 or BF16.
//   x    [T, C] float32 of packed rows; W [N, C], rows padded with zeros to 16 bytes
//   A warp is one output of up to eight rows. Lane l takes the pieces of 16 bytes l, l + 32, … of
//   the row, the columns of a piece ascending, with a fused multiply-add each; the lanes' sums are
//   added as (l, l ^ 16), (l, l ^ 8), …. So the order depends on C and the type's size alone:
//   neither on T, nor on the rows beside.
//   Bytes: N C times the type's size, once for every eight rows; x comes from the first cache.
//   Error: |sum| within (C / 32 + 13) roundings of sum_c |x w|, then one for each part of the end.
#include "cuda/device/memory.cuh"
#include "cuda/ops/linear_end.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kWarps = kThreads / 32;
constexpr int32_t kRows = kMatvecRows;

struct WeightF32 {
  static constexpr int32_t kElements = 4;
  GEN_DEVICE static void decode(const device::UInt4& from, float (&w)[4]) {
    w[0] = float_from_bits(from.x);
    w[1] = float_from_bits(from.y);
    w[2] = float_from_bits(from.z);
    w[3] = float_from_bits(from.w);
  }
};
struct WeightF16 {
  static constexpr int32_t kElements = 8;
  GEN_DEVICE static void decode(const device::UInt4& from, float (&w)[8]) {
    const uint32_t words[4] = {from.x, from.y, from.z, from.w};
    GEN_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      w[2 * i] = f16_to_f32(static_cast<uint16_t>(words[i] & 0xFFFFU));
      w[2 * i + 1] = f16_to_f32(static_cast<uint16_t>(words[i] >> 16));
    }
  }
};
struct WeightBF16 {
  static constexpr int32_t kElements = 8;
  GEN_DEVICE static void decode(const device::UInt4& from, float (&w)[8]) {
    const uint32_t words[4] = {from.x, from.y, from.z, from.w};
    GEN_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      w[2 * i] = float_from_bits(words[i] << 16);
      w[2 * i + 1] = float_from_bits(words[i] & 0xFFFF0000U);
    }
  }
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
    float w[static_cast<size_t>(kElements)];
    Type::decode(next, w);
    if (first + 32 * kElements < cols) next = load(first + 32 * kElements);
    const bool whole = first + kElements <= cols;  // the rest of a row of x is no number at all
    GEN_UNROLL
    for (int32_t j = 0; j < kRows; ++j) {
      if (j >= n) continue;
      const auto* const from =
          reinterpret_cast<const float*>(rows + static_cast<size_t>(j) * x.at.bytes) + first;
      GEN_UNROLL
      for (int32_t i = 0; i < kElements; i += 4) {
        device::UInt4 four = {};
        if (whole) four = device::load16(from + i);
        const uint32_t bits[4] = {four.x, four.y, four.z, four.w};
        GEN_UNROLL
        for (int32_t k = 0; k < 4; ++k) {
          float value = float_from_bits(bits[k]);
          if (!whole) value = first + i + k < cols ? from[i + k] : 0.0F;
          sums[j] = multiply_add(value, w[i + k], sums[j]);
        }
      }
    }
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
