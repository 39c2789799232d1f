// SPDX-License-Identifier: Apache-2.0
// What products of float weights for few rows have in common, whoever brings the weights: pieces of
// 16 bytes as floats, what a piece adds to the sums of a lane, and the sums of the lanes. The order
// of additions is said in linear_floats.cu.
#pragma once

#include <cstddef>

#include "cuda/device/memory.cuh"
#include "cuda/ops/device.cuh"

namespace gen::cuda {

/// Weights by type: kElements of them in a piece.
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
template <size_t kOf>
GEN_DEVICE float sum_lanes(float (&sums)[kOf], int32_t n) {
  constexpr auto kRows = static_cast<int32_t>(kOf);
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

/// Adds the products of a piece, columns [first, first + kElements) of an output, to the sums of
/// `n` rows of x, which begin `row_bytes` apart and have `cols` columns; columns ascending.
template <typename Type, size_t kOf>
GEN_DEVICE void add_piece(const device::UInt4& piece, const uint8_t* rows, size_t row_bytes,
                          int32_t n, int32_t first, int32_t cols, float (&sums)[kOf]) {
  constexpr auto kRows = static_cast<int32_t>(kOf);
  constexpr int32_t kElements = Type::kElements;
  float w[static_cast<size_t>(kElements)];
  Type::decode(piece, w);
  const bool whole = first + kElements <= cols;  // the rest of a row of x is no number at all
  GEN_UNROLL
  for (int32_t j = 0; j < kRows; ++j) {
    if (j >= n) continue;
    const auto* const from =
        reinterpret_cast<const float*>(rows + static_cast<size_t>(j) * row_bytes) + first;
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

}  // namespace gen::cuda
