// SPDX-License-Identifier: Apache-2.0
// Code shared by products of float weights for few rows, however the weights are loaded: pieces of
// 16 bytes as floats, the matching elements of x, the products of both, and the sums over lanes.
// The order of additions is described in linear_floats.cu.
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

/// Adds the lanes' partial sums as (l, l ^ 16), (l, l ^ 8), (l, l ^ 4), (l, l ^ 2), (l, l ^ 1). At
/// each step a lane keeps half of its sums while it has more than one; in the end it has sum number
/// lane / (32 / kSums).
template <size_t kSums>
GEN_DEVICE float sum_lanes(float (&sums)[kSums]) {
  auto n = static_cast<int32_t>(kSums);
  GEN_UNROLL
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    const bool upper = (static_cast<uint32_t>(lane_of_warp()) & apart) != 0;
    if (n > 1) {
      n /= 2;
      GEN_UNROLL
      for (int32_t i = 0; i < static_cast<int32_t>(kSums / 2); ++i) {
        if (i >= n) continue;
        const float give = upper ? sums[i] : sums[i + n];
        const float keep = upper ? sums[i + n] : sums[i];
        sums[i] = keep + shuffle_xor(give, apart);
      }
    } else {
      sums[0] = sums[0] + shuffle_xor(sums[0], apart);
    }
  }
  return sums[0];
}

/// Elements of x in a piece that are beyond the columns are undefined.
template <int32_t kElements>
GEN_DEVICE void drop_beyond(int32_t left, float (&x)[static_cast<size_t>(kElements)]) {
  if (left >= kElements) return;
  GEN_UNROLL
  for (int32_t i = 0; i < kElements; ++i) x[i] = i < left ? x[i] : 0.0F;
}
/// The elements of x that match a piece of weights.
template <int32_t kElements>
GEN_DEVICE void load_elements(const float* from, int32_t left,
                              float (&x)[static_cast<size_t>(kElements)]) {
  GEN_UNROLL
  for (int32_t i = 0; i < kElements; i += 4) {
    const device::UInt4 four = device::load16(from + i);  // rows are padded to 64 bytes
    x[i] = float_from_bits(four.x);
    x[i + 1] = float_from_bits(four.y);
    x[i + 2] = float_from_bits(four.z);
    x[i + 3] = float_from_bits(four.w);
  }
  drop_beyond<kElements>(left, x);
}

/// A sum and the products of a piece, columns ascending.
template <size_t kElements>
GEN_DEVICE float add_products(const float (&x)[kElements], const float (&w)[kElements], float sum) {
  GEN_UNROLL
  for (size_t k = 0; k < kElements; ++k) sum = multiply_add(x[k], w[k], sum);
  return sum;
}

}  // namespace gen::cuda
