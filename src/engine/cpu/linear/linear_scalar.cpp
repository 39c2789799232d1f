// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights in plain C++: the definition of the order of operations, which
// every faster kernel repeats bit for bit. Integer sums are exact, so their order is free; the
// float operations below are not. Float weights are in linear_float-inl.h.
#include "engine/cpu/linear/linear_scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "engine/cpu/pack/activations.h"
#include "engine/cpu/weight/weight_layout.h"
#include "tensor/half.h"

namespace gen::engine::cpu {
namespace {

using quant::Traits;

// Value, zero included, of column 4 * quad + i (at = 4 * row + i) within 32.
template <Traits t>
int value_at(const uint8_t* codes, int quad, int at) noexcept {
  constexpr int kBase = base_bits(t.bits);
  constexpr int kUpper = upper_bits(t.bits);
  int code = (codes[quad % kBase * kQuadBytes + at] >> (quad / kBase * kBase)) & ((1 << kBase) - 1);
  if constexpr (kUpper > 0) {
    const int upper = codes[(kBase + quad % kUpper) * kQuadBytes + at];
    code |= ((upper >> (quad / kUpper * kUpper)) & ((1 << kUpper) - 1)) << kBase;
  }
  if constexpr (t.table != quant::CodeTable::kNone) return quant::table_values(t.table)[code];
  return code;
}

// Sum over quads [first, first + count) of 32 columns of row r.
template <Traits t>
int32_t dot(const uint8_t* codes, int first, int count, int r, const int8_t* q) noexcept {
  int32_t sum = 0;
  for (int quad = first; quad < first + count; ++quad) {
    for (int i = 0; i < 4; ++i) sum += value_at<t>(codes, quad, r * 4 + i) * q[quad * 4 + i];
  }
  return sum;
}

template <Traits t>
float block_scale(const std::byte* tile, int64_t at) noexcept {
  if constexpr (t.scale == quant::ScaleKind::kE8M0) {
    // 2^(e - 128); the two smallest, which are subnormal, count as 0.
    const uint32_t e = std::to_integer<uint32_t>(tile[at]);
    return std::bit_cast<float>((std::max(e, 1u) - 1) << 23);
  } else {
    return f16_to_f32(reinterpret_cast<const uint16_t*>(tile)[at]) * quant::unit_of(t);
  }
}

template <Traits t>
float sum_blocks_of_32(const std::byte* tile, int64_t cols, const std::byte* x_row,
                       int r) noexcept {
  const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, cols));
  const auto* codes = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, cols));
  const auto* x = reinterpret_cast<const ActQ8Block*>(x_row);
  float acc = 0.0F;
  for (int64_t b = 0; b < cols / 32; ++b, codes += block_bytes(t)) {
    for (int run = 0; run < runs_of(t); ++run) {
      const int8_t* q = x[b].q + run * t.run;
      const int32_t of_x = std::accumulate(q, q + t.run, int32_t{0});
      const int32_t sum = dot<t>(codes, run * t.run / 4, t.run / 4, r, x[b].q) - t.zero * of_x;
      const float scale = block_scale<t>(tile, (b * runs_of(t) + run) * kTileRows + r) * x[b].scale;
      acc = std::fma(scale, static_cast<float>(sum), acc);
    }
    if constexpr (t.minima) {
      const float m = f16_to_f32(dmin[b * kTileRows + r]) * x[b].scale;
      acc = std::fma(m, static_cast<float>(x[b].minus_128_sum) * -0x1p-7F, acc);
    }
  }
  return acc;
}

template <Traits t>
float sum_blocks_of_256(const std::byte* tile, int64_t cols, const std::byte* x_row,
                        int r) noexcept {
  constexpr int kPerSubBlock = 32 / t.run;  // runs in 32 columns
  const auto* d = reinterpret_cast<const uint16_t*>(tile);
  const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, cols));
  const auto* block = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, cols));
  const auto* x = reinterpret_cast<const ActQ8KBlock*>(x_row);
  float acc = 0.0F;
  for (int64_t b = 0; b < cols / 256; ++b, block += block_bytes(t), ++x) {
    const uint8_t* paired = block + minima_offset(t);
    const uint8_t* codes = block + codes_offset(t);
    float scaled = 0.0F;
    int32_t minima = 0;
    for (int run = 0; run < runs_of(t); ++run) {
      const int pair = paired[run / 2 * 2 * kTileRows + r * 2 + run % 2];
      const int scale =
          packed_minima(t) ? pair & 15 : static_cast<int8_t>(block[run * kTileRows + r]);
      const int sum16_first = run * t.run / 16;
      int32_t sum =
          dot<t>(codes + static_cast<size_t>(run / kPerSubBlock) * sub_block_bytes(t),
                 run % kPerSubBlock * t.run / 4, t.run / 4, r, x->q + run / kPerSubBlock * 32);
      for (int i = 0; i < t.run / 16; ++i) sum -= t.zero * x->sum16[sum16_first + i];
      scaled = std::fma(static_cast<float>(sum), static_cast<float>(scale), scaled);
      if constexpr (t.minima) {
        const int minimum = packed_minima(t) ? pair >> 4 : pair;
        minima += minimum * (t.run == 16 ? x->sum16[run] : x->sum32[run]);
      }
    }
    constexpr float kUnit = quant::unit_of(t);
    acc = std::fma(f16_to_f32(d[b * kTileRows + r]) * kUnit * x->scale, scaled, acc);
    if constexpr (t.minima) {
      acc = std::fma(-(f16_to_f32(dmin[b * kTileRows + r]) * kUnit * x->scale),
                     static_cast<float>(minima), acc);
    }
  }
  return acc;
}

template <size_t kIndex>
void linear(const TileJob& job) {
  constexpr Traits t = quant::kTraits[kIndex];
  for (int64_t i = 0; i < job.n_tiles; ++i) {
    const std::byte* tile = job.tiles + static_cast<size_t>(i) * job.tile_bytes;
    for (int64_t row = 0; row < job.rows; ++row) {
      const std::byte* x = job.x + static_cast<size_t>(row) * job.x_stride;
      float* acc = job.acc + row * job.acc_stride + i * kTileRows;
      for (int r = 0; r < kTileRows; ++r) {
        if constexpr (t.block == 32) {
          acc[r] = sum_blocks_of_32<t>(tile, job.cols, x, r);
        } else {
          acc[r] = sum_blocks_of_256<t>(tile, job.cols, x, r);
        }
      }
    }
  }
}

template <size_t... kIndices>
constexpr QuantKernels all_kernels(std::index_sequence<kIndices...>) {
  return {{linear<kIndices>...}};
}
constexpr QuantKernels kKernels = all_kernels(kQuantIndices);

}  // namespace

const QuantKernels* quant_kernels_scalar() noexcept { return &kKernels; }

}  // namespace gen::engine::cpu
