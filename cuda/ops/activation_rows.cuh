// SPDX-License-Identifier: Apache-2.0
// Computes the other forms of a packed row from its float32, one thread block per range of columns;
// see activation_rows.h.
//   scale = max |x| / 127 (of kActQ8 rounded to binary16), q = x * 127 / max |x| to the nearest
//   even; a block with a NaN or infinity has q = 0 and scale NaN. The bits of the CPU engine.
#pragma once

#include "cuda/ops/activation_rows.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"

namespace gen::cuda {

struct QuantScale {
  float scale;
  float inverse;  // 0 where all q are 0
};

constexpr uint32_t kInfinityBits = 0x7F800000U;

/// The scale of a block of 32, from the bits of its largest magnitude.
GEN_DEVICE QuantScale q8_scale(uint32_t amax_bits) {
  if (amax_bits >= kInfinityBits) return {float_from_bits(0x7FC00000U), 0.0F};
  const float amax = float_from_bits(amax_bits);
  const float wanted = amax / 127.0F;
  const float scale = f16_to_f32(f32_to_f16(min_of(wanted, 65504.0F)));
  if (wanted >= 0x1p-14F && wanted <= 65504.0F) return {scale, 127.0F / amax};
  return {scale, scale > 0.0F ? 1.0F / scale : 0.0F};
}
/// Of 256.
GEN_DEVICE QuantScale q8k_scale(uint32_t amax_bits) {
  if (amax_bits >= kInfinityBits) return {float_from_bits(0x7FC00000U), 0.0F};
  const float amax = float_from_bits(amax_bits);
  const float scale = amax / 127.0F;
  if (scale < 0x1p-120F) return {0.0F, 0.0F};
  return {scale, 127.0F / amax};
}

GEN_DEVICE int32_t quantised(float x, float inverse) {
  if (inverse == 0.0F) return 0;
  const float limited = min_of(max_of(x * inverse, -127.0F), 127.0F);
  return static_cast<int32_t>((limited + kRoundMagic) - kRoundMagic);
}

GEN_DEVICE uint32_t largest_of_warp(uint32_t bits) {
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    const uint32_t other = shuffle_xor(bits, apart);
    bits = other > bits ? other : bits;
  }
  return bits;
}
/// The maximum over `lanes` adjacent lanes.
GEN_DEVICE int32_t sum_of_lanes(int32_t x, uint32_t lanes) {
  for (uint32_t apart = lanes / 2; apart > 0; apart /= 2) x += shuffle_xor(x, apart);
  return x;
}

/// The other forms of columns [first, end) of row t, read(column) being its float32; `first` is a
/// multiple of 256. A warp takes a block, or four of 32, whose elements it reads at once.
template <typename Read>
GEN_DEVICE void quantise_columns(const PackedRows& to, int64_t t, int32_t first, int32_t end,
                                 const Read& read) {
  constexpr int32_t kBlocks = 4;
  uint8_t* const row = to.data + static_cast<size_t>(t) * to.at.bytes;
  const int32_t lane = lane_of_warp();
  const int32_t warps = block_threads() / 32;
  if (to.at.q8 != 0) {
    for (int32_t b = first / 32 + warp_of_block(); b < end / 32; b += kBlocks * warps) {
      float values[kBlocks];
      GEN_UNROLL
      for (int32_t i = 0; i < kBlocks; ++i) {
        values[i] = 0.0F;
        if (b + i * warps < end / 32) values[i] = read((b + i * warps) * 32 + lane);
      }
      GEN_UNROLL
      for (int32_t i = 0; i < kBlocks; ++i) {
        const int32_t block = b + i * warps;
        if (block >= end / 32) continue;
        const QuantScale scale = q8_scale(largest_of_warp(float_bits(values[i]) & 0x7FFFFFFFU));
        const int32_t q = quantised(values[i], scale.inverse);
        row[to.at.q8 + static_cast<size_t>(block * 32 + lane)] = static_cast<uint8_t>(q);
        const int32_t sum = sum_of_lanes(q, 32);
        auto* const pair = row + to.at.q8_pairs + static_cast<size_t>(block) * 8;
        if (lane == 0) *reinterpret_cast<float*>(pair) = scale.scale;
        if (lane == 1) *reinterpret_cast<int32_t*>(pair + 4) = sum;
      }
    }
  }
  if (to.at.q8k != 0) {
    auto* const scales = reinterpret_cast<float*>(row + to.at.q8k_scales);
    auto* const sums = reinterpret_cast<int32_t*>(row + to.at.q8k_sums);
    for (int32_t b = first / 256 + warp_of_block(); b < end / 256; b += warps) {
      float values[8];
      uint32_t largest = 0;
      GEN_UNROLL
      for (int32_t i = 0; i < 8; ++i) {
        values[i] = read(b * 256 + i * 32 + lane);
        const uint32_t bits = float_bits(values[i]) & 0x7FFFFFFFU;
        largest = bits > largest ? bits : largest;
      }
      const QuantScale scale = q8k_scale(largest_of_warp(largest));
      GEN_UNROLL
      for (int32_t i = 0; i < 8; ++i) {
        const int32_t q = quantised(values[i], scale.inverse);
        row[to.at.q8k + static_cast<size_t>(b * 256 + i * 32 + lane)] = static_cast<uint8_t>(q);
        const int32_t sum = sum_of_lanes(q, 16);
        if (lane % 16 == 0) sums[b * 16 + i * 2 + lane / 16] = sum;
      }
      if (lane == 0) scales[b] = scale.scale;
    }
  }
}

/// Writes a column of a row that begins at `row`, as float32 or bfloat16.
GEN_DEVICE void put_column(uint8_t* row, bool bf16, int64_t column, float value) {
  if (bf16) {
    reinterpret_cast<uint16_t*>(row)[column] = device::f32_to_bf16(value);
  } else {
    reinterpret_cast<float*>(row)[column] = value;
  }
}

/// Whether there is more than float32.
GEN_DEVICE bool has_forms(const PackedRows& of) { return of.at.q8 != 0 || of.at.q8k != 0; }

}  // namespace gen::cuda
