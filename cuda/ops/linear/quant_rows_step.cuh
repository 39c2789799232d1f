// SPDX-License-Identifier: Apache-2.0
// A step of the products of linear_quant_rows.cuh: where it lies in shared memory, and what a warp
// adds to its sums. Sums within a block of 32, or a run of a block of 256, are exact integers, so
// their order is free. The float terms are added in order, blocks and runs ascending, by the lane
// that has the sum.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/weight/weight_fragments.cuh"
#include "cuda/ops/weight/weight_tiles.h"

namespace gen::cuda {

using quant::Traits;

constexpr int32_t kRowsThreads = 256;
constexpr int32_t kRowsWarps = kRowsThreads / 32;
constexpr int32_t kRowsTiles = kRowsWarps;  // of a block

/// What a warp has: products of 16 rows, of each of its tiles. Warps side by side have all tiles of
/// the block, those one above another its rows.
struct RowsShape {
  int32_t groups;  // of 16 rows
  int32_t tiles;
};
constexpr RowsShape kRowShapes[] = {{2, 4}, {2, 2}, {1, 2}};
constexpr int32_t block_rows(const RowsShape& s) noexcept { return 16 * s.groups * s.tiles; }

/// A step in shared memory: of the tiles, then rows of int8, 16 bytes apart so that eight of them
/// lie in different banks, then the rest of the rows as it lies in them, 16 bytes apart for the
/// same reason: {scale, sum} of each block of 32, or the sums of 16 runs where minima want them,
/// and then scales, of a block of 256.
struct RowsStage {
  int32_t x;
  int32_t rest;
  int32_t scales;
  int32_t bytes;
};
constexpr int32_t x_stride(const Traits& t) noexcept { return step_cols(t) + 16; }
constexpr int32_t rest_bytes(const Traits& t) noexcept {
  return t.block == 32 ? 32 : t.minima ? 64 : 0;
}
constexpr int32_t rest_stride(const Traits& t) noexcept {
  return rest_bytes(t) == 0 ? 0 : rest_bytes(t) + 16;
}
constexpr RowsStage rows_stage(const Traits& t, const RowsShape& s) noexcept {
  RowsStage at = {};
  at.x = kRowsTiles * step_bytes(t);
  at.rest = at.x + block_rows(s) * x_stride(t);
  at.scales = at.rest + block_rows(s) * rest_stride(t);
  at.bytes = at.scales + (t.block == 32 ? 0 : block_rows(s) * 4);
  return at;
}
constexpr size_t rows_shared_bytes(const Traits& t, const RowsShape& s) noexcept {
  return 2 * static_cast<size_t>(rows_stage(t, s).bytes);
}

/// What a lane has of a product: element i is of row g + i / 2 * 8 and output 2 t + i % 2.
template <typename T>
using Four = T[4];
/// Of all products of a warp.
template <typename T, RowsShape s>
using Products = Four<T>[static_cast<size_t>(s.tiles)][static_cast<size_t>(s.groups)];

/// A step as a warp reads it.
template <Traits t, RowsShape s>
struct WarpStep {
  static constexpr RowsStage kAt = rows_stage(t, s);
  const Shared<uint8_t>& bytes;
  int32_t first_row;
  const int32_t (&tiles)[static_cast<size_t>(s.tiles)];  // their places

  [[nodiscard]] GEN_DEVICE StepInShared tile(int32_t n) const { return {bytes, tiles[n]}; }
  /// a of the product of a group of rows with the columns of a unit of the step.
  GEN_DEVICE void x_fragment(int32_t group, int32_t unit, uint32_t (&a)[4]) const {
    const int32_t lane = lane_of_warp();
    device::load_matrices(
        a, bytes,
        kAt.x + (first_row + group * 16 + lane % 16) * x_stride(t) + unit * 32 + lane / 16 * 16);
  }
  /// Row g of a group, or row g + 8.
  [[nodiscard]] GEN_DEVICE int32_t row(int32_t group, int32_t half) const {
    return first_row + group * 16 + half * 8 + lane_of_warp() / 4;
  }
  /// Pair `pair` of words of a row's rest.
  [[nodiscard]] GEN_DEVICE device::UInt2 rest(int32_t row, int32_t pair) const {
    return shared_at<device::UInt2>(bytes, kAt.rest + row * rest_stride(t) + pair * 8);
  }
  [[nodiscard]] GEN_DEVICE float x_scale(int32_t row) const {
    return shared_at<float>(bytes, kAt.scales + row * 4);
  }
};

/// Scale of quarter `quarter` of output 2 t + `output`, of blocks of 32.
template <Traits t>
GEN_DEVICE float quarter_scale(const StepInShared& tile, int32_t output, int32_t quarter) {
  const int32_t at = kTileQuarters * (lane_of_warp() % 4 * 2 + output) + quarter;
  if constexpr (t.scale == quant::ScaleKind::kE8M0) {
    return stored_scale<t>(tile.load1(d_offset(t) + at));
  }
  return stored_scale<t>(tile.load2(d_offset(t) + 2 * at));
}

/// Adds a block of 32: quarter `quarter` of a step.
template <Traits t, RowsShape s>
GEN_DEVICE void add_block_of_32(const WarpStep<t, s>& step, int32_t quarter,
                                Products<float, s>& sums) {
  uint32_t a[static_cast<size_t>(s.groups)][4];
  float x_scale[static_cast<size_t>(s.groups)][2];
  float x_sum[static_cast<size_t>(s.groups)][2];
  GEN_UNROLL
  for (int32_t m = 0; m < s.groups; ++m) {
    step.x_fragment(m, quarter, a[m]);
    GEN_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      const device::UInt2 pair = step.rest(step.row(m, i), quarter);
      x_scale[m][i] = float_from_bits(pair.x);
      if constexpr (t.minima) x_sum[m][i] = static_cast<float>(static_cast<int32_t>(pair.y));
    }
  }
  GEN_UNROLL
  for (int32_t n = 0; n < s.tiles; ++n) {
    const StepInShared tile = step.tile(n);
    UnitCodes<t> codes;
    codes.load(tile, quarter, 0);
    uint32_t b[2];
    codes.fragment(b);
    float scale[2];
    float minimum[2] = {};
    GEN_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      scale[i] = quarter_scale<t>(tile, i, quarter);
      if constexpr (t.minima) {
        const int32_t at = kTileQuarters * (lane_of_warp() % 4 * 2 + i) + quarter;
        minimum[i] = f16_to_f32(static_cast<uint16_t>(tile.load2(dmin_offset(t) + 2 * at)));
      }
    }
    GEN_UNROLL
    for (int32_t m = 0; m < s.groups; ++m) {
      int32_t product[4];
      device::mma_s8(product, a[m], b, kExactSum);
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        float& sum = sums[n][m][i];
        sum = multiply_add(scale[i % 2] * x_scale[m][i / 2], exact_sum<t>(product[i]), sum);
        if constexpr (t.minima) {
          sum = multiply_add(minimum[i % 2] * x_scale[m][i / 2], x_sum[m][i / 2], sum);
        }
      }
    }
  }
}

/// Adds 32 columns of a block of 256, unit `unit` of the step, to the sums of the block.
template <Traits t, RowsShape s>
GEN_DEVICE void add_unit_of_256(const WarpStep<t, s>& step, int32_t unit,
                                Products<float, s>& scaled) {
  uint32_t a[static_cast<size_t>(s.groups)][4];
  GEN_UNROLL
  for (int32_t m = 0; m < s.groups; ++m) step.x_fragment(m, unit, a[m]);
  GEN_UNROLL
  for (int32_t n = 0; n < s.tiles; ++n) {
    const StepInShared tile = step.tile(n);
    UnitCodes<t> codes;
    codes.load(tile, unit / 2, unit % 2);
    uint32_t b[2];
    codes.fragment(b);
    uint32_t runs[2];
    GEN_UNROLL
    for (int32_t i = 0; i < 2; ++i) {
      const int32_t at = kTileQuarters * (lane_of_warp() % 4 * 2 + i) + unit / 2;
      const int32_t place = runs_offset(t) + run_bytes(t) * at;
      runs[i] = run_bytes(t) == 4 ? tile.load4(place) : tile.load2(place);
    }
    GEN_UNROLL
    for (int32_t half = 0; half < 32 / t.run; ++half) {
      const int32_t run = unit % 2 * (32 / t.run) + half;
      const float scales[2] = {static_cast<float>(scale_of_run<t>(runs[0], run)),
                               static_cast<float>(scale_of_run<t>(runs[1], run))};
      GEN_UNROLL
      for (int32_t m = 0; m < s.groups; ++m) {
        int32_t product[4];
        if constexpr (t.run == 32) {
          device::mma_s8(product, a[m], b, kExactSum);
        } else {
          device::mma_s8_k16(product, {a[m][2 * half], a[m][2 * half + 1]}, b[half], kExactSum);
        }
        GEN_UNROLL
        for (int32_t i = 0; i < 4; ++i) {
          float& sum = scaled[n][m][i];
          sum = multiply_add(exact_sum<t>(product[i]), scales[i % 2], sum);
        }
      }
    }
  }
}

/// Two integers of magnitude below 2049 as float16.
GEN_DEVICE uint32_t two_halves(uint32_t low, uint32_t high) {
  return device::pack_f16(static_cast<float>(static_cast<int32_t>(low)),
                          static_cast<float>(static_cast<int32_t>(high)));
}

/// a of the product of sums of 16 columns of a group of rows with minima.
template <Traits t, RowsShape s>
GEN_DEVICE void x_sums_fragment(const WarpStep<t, s>& step, int32_t group, uint32_t (&a)[4]) {
  GEN_UNROLL
  for (int32_t i = 0; i < 4; ++i) {
    const device::UInt2 two = step.rest(step.row(group, i % 2), lane_of_warp() % 4 + i / 2 * 4);
    a[i] = two_halves(two.x, two.y);
  }
}
/// b: minima of output g, for each 16 columns.
template <Traits t>
GEN_DEVICE void minima_fragment(const StepInShared& tile, uint32_t (&b)[2]) {
  GEN_UNROLL
  for (int32_t i = 0; i < 2; ++i) {
    const int32_t first = lane_of_warp() % 4 * 2 + i * 8;  // of two times 16 columns
    const int32_t lane = kTileQuarters * (lane_of_warp() / 4) + first / 4;
    const uint32_t runs = run_bytes(t) == 4 ? tile.load4(runs_offset(t) + 4 * lane)
                                            : tile.load2(runs_offset(t) + 2 * lane);
    const int32_t within = first % 4 * 16 / t.run;
    const auto low = static_cast<uint32_t>(minimum_of_run<t>(runs, within));
    b[i] = two_halves(
        low, t.run == 32 ? low : static_cast<uint32_t>(minimum_of_run<t>(runs, within + 1)));
  }
}

/// Adds the sums of a block of 256.
template <Traits t, RowsShape s>
GEN_DEVICE void add_block_of_256(const WarpStep<t, s>& step, const Products<float, s>& scaled,
                                 Products<float, s>& sums) {
  uint32_t x_sums[static_cast<size_t>(s.groups)][4];
  if constexpr (t.minima) {
    GEN_UNROLL
    for (int32_t m = 0; m < s.groups; ++m) x_sums_fragment<t, s>(step, m, x_sums[m]);
  }
  GEN_UNROLL
  for (int32_t n = 0; n < s.tiles; ++n) {
    const StepInShared tile = step.tile(n);
    const auto halves = [&](int32_t offset, float(&to)[2]) {
      const uint32_t two = tile.load4(offset + lane_of_warp() % 4 * 4);
      to[0] = stored_scale<t>(two & 0xFFFFU);
      to[1] = stored_scale<t>(two >> 16);
    };
    float d[2];
    float dmin[2];
    uint32_t b[2];
    halves(d_offset(t), d);
    if constexpr (t.minima) {
      halves(dmin_offset(t), dmin);
      minima_fragment<t>(tile, b);
    }
    GEN_UNROLL
    for (int32_t m = 0; m < s.groups; ++m) {
      const float x_scale[2] = {step.x_scale(step.row(m, 0)), step.x_scale(step.row(m, 1))};
      float minima[4] = {};
      if constexpr (t.minima) device::mma_f16(minima, x_sums[m], b);
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        float& sum = sums[n][m][i];
        sum = multiply_add(d[i % 2] * x_scale[i / 2], scaled[n][m][i], sum);
        if constexpr (t.minima) {
          sum = multiply_add(-(dmin[i % 2] * x_scale[i / 2]), minima[i], sum);
        }
      }
    }
  }
}

/// Adds a step that has `n` blocks of 32, or one of 256.
template <Traits t, RowsShape s>
GEN_DEVICE void add_step(const WarpStep<t, s>& step, int32_t n, Products<float, s>& sums) {
  if constexpr (t.block == 32) {
    if (n >= kTileQuarters) {
      GEN_UNROLL
      for (int32_t quarter = 0; quarter < kTileQuarters; ++quarter) {
        add_block_of_32<t, s>(step, quarter, sums);
      }
    } else {
      GEN_NO_UNROLL
      for (int32_t quarter = 0; quarter < n; ++quarter) {
        add_block_of_32<t, s>(step, quarter, sums);
      }
    }
  } else {
    Products<float, s> scaled = {};
    GEN_NO_UNROLL
    for (int32_t unit = 0; unit < step_cols(t) / 32; ++unit) {
      add_unit_of_256<t, s>(step, unit, scaled);
    }
    add_block_of_256<t, s>(step, scaled, sums);
  }
}

}  // namespace gen::cuda
