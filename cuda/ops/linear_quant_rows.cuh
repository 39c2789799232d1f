// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights for many rows, on the integer units of tensor cores: what
// linear_quant.cuh does for few, with the same bits. Sums within a block of 32, or a run of a block
// of 256, are integers and exact, so it does not show who adds them; what follows is added in its
// order, blocks and runs ascending, by the lane that has the sum.
//
//   Work    A block of threads is 64 rows of x (32 for blocks of 256) by 64 outputs, of a gated
//           product 32 outputs and their gates. A warp is all of its rows by two tiles of weights,
//           which it reads from global memory as fragments (weight_fragments.cuh). x comes through
//           shared memory, one step (128 or 256 columns) ahead of the products. Each product of
//           16 x 8 x 32, or 16 for runs of 16, starts from zero; its sums go at once into the
//           float32 sums of the lanes: a conversion, a product of two scales, and a multiply-add
//           each.
//   Bytes   the tiles once for every 64 or 32 rows, x once for every 64 outputs; neighbouring
//           blocks have the same weights, so that most of this comes from the second cache.
//   Shared  twice 11 KiB, or twice 11 KiB for blocks of 256.
//   Bound   sm_90: about 20 float instructions go with each product of 4096; so they, not the
//           tensor cores, are the limit, at about a fifth of their rate.
//   Tried   nothing on a device yet.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/ops/linear_end.cuh"
#include "cuda/ops/warp_sums.cuh"
#include "cuda/ops/weight_fragments.cuh"

namespace gen::cuda {

using quant::Traits;

constexpr int32_t kRowsThreads = 128;
constexpr int32_t kRowsWarps = kRowsThreads / 32;
constexpr int32_t kRowsTiles = 2;  // of a warp

/// Products of 16 rows that a warp has of each tile.
constexpr int32_t row_groups(const Traits& t) noexcept { return t.block == 32 ? 4 : 2; }
constexpr int32_t rows_of_block(const Traits& t) noexcept { return 16 * row_groups(t); }

/// A step of x in shared memory: rows of int8, 16 bytes apart so that eight of them lie in
/// different banks, then the rest of the rows as it lies in them: {scale, sum} of each block of 32,
/// or the sums of 16 runs, and then scales, of a block of 256.
constexpr int32_t x_stride(const Traits& t) noexcept { return step_cols(t) + 16; }
constexpr int32_t rest_stride(const Traits& t) noexcept { return t.block == 32 ? 32 : 64; }
constexpr int32_t rest_offset(const Traits& t) noexcept { return rows_of_block(t) * x_stride(t); }
constexpr int32_t scales_offset(const Traits& t) noexcept {
  return rest_offset(t) + rows_of_block(t) * rest_stride(t);
}
constexpr int32_t stage_bytes(const Traits& t) noexcept {
  return scales_offset(t) + (t.block == 32 ? 0 : rows_of_block(t) * 4);
}
/// Two steps; in the end the sums of all warps.
constexpr size_t shared_bytes(const Traits& t) noexcept {
  const size_t sums = kRowsWarps * WarpSums<kRowsTiles * kTileOutputs>::bytes(rows_of_block(t));
  const size_t steps = 2 * static_cast<size_t>(stage_bytes(t));
  return steps > sums ? steps : sums;
}

struct QuantRowsView {
  PackedRows x;
  LinearEnd end;
  const uint8_t* tiles;
  const uint8_t* up_tiles;
  size_t tile_bytes;
  int32_t n_tiles;
  int32_t n_steps;
  int32_t n_blocks;
};

/// Starts to copy a step of rows [first, first + n) of x; rows behind them become zeros.
template <Traits t>
GEN_DEVICE void copy_step(const QuantRowsView& of, int64_t first, int32_t n, int32_t step,
                          const Shared<uint8_t>& to) {
  constexpr int32_t kRows = rows_of_block(t);
  constexpr int32_t kPieces = step_cols(t) / 16;
  constexpr int32_t kRest = rest_stride(t) / 16;
  const RowLayout& at = of.x.at;
  const uint8_t* const rows = of.x.data + static_cast<size_t>(first) * at.bytes;
  const auto place = [&](int32_t row) {
    return rows + static_cast<size_t>(row < n ? row : 0) * at.bytes;
  };
  for (int32_t i = thread_x(); i < kRows * kPieces; i += kRowsThreads) {
    const int32_t row = i / kPieces;
    const int32_t column = step * step_cols(t) + i % kPieces * 16;
    const bool valid = row < n && column < static_cast<int32_t>(of.x.cols);
    device::copy_async16(to, row * x_stride(t) + i % kPieces * 16,
                         place(row) + (t.block == 32 ? at.q8 : at.q8k) + (valid ? column : 0),
                         valid);
  }
  for (int32_t i = thread_x(); i < kRows * kRest; i += kRowsThreads) {
    const int32_t row = i / kRest;
    const int32_t within = i % kRest * 16;
    device::copy_async16(to, rest_offset(t) + row * rest_stride(t) + within,
                         place(row) + (t.block == 32 ? at.q8_pairs : at.q8k_sums) +
                             static_cast<size_t>(step * rest_stride(t) + within),
                         row < n);
  }
  if constexpr (t.block != 32) {
    for (int32_t row = thread_x(); row < kRows; row += kRowsThreads) {
      device::copy_async4(to, scales_offset(t) + row * 4,
                          place(row) + at.q8k_scales + static_cast<size_t>(step) * 4, row < n);
    }
  }
}

/// a of the product of 16 rows from `row` on with the columns of a unit of the step.
template <Traits t>
GEN_DEVICE void x_fragment(const Shared<uint8_t>& x, int32_t row, int32_t unit, uint32_t (&a)[4]) {
  const int32_t lane = lane_of_warp();
  const int32_t matrix = lane / 8;
  device::load_matrices(
      a, x, (row + matrix % 2 * 8 + lane % 8) * x_stride(t) + unit * 32 + matrix / 2 * 16);
}

/// What a lane has of a product: element i is of row g + i / 2 * 8 and output 2 t + i % 2.
template <typename T>
using Four = T[4];
/// Of all products of a warp.
template <typename T, Traits t>
using Products = Four<T>[kRowsTiles][static_cast<size_t>(row_groups(t))];

template <Traits t>
using WarpQuarters = QuarterFragments<t>[kRowsTiles];

/// Rows and tiles that a warp has.
struct WarpShare {
  int32_t groups;  // of 16 rows
  int32_t tiles;
};

/// Adds a block of 32: quarter `quarter` of a step.
template <Traits t>
GEN_DEVICE void add_block_of_32(const Shared<uint8_t>& x, int32_t quarter, const WarpShare& has,
                                const WarpQuarters<t>& weights, Products<float, t>& sums) {
  const Shared<device::UInt2> pairs =
      x.part(rest_offset(t), static_cast<size_t>(rows_of_block(t) * rest_stride(t)))
          .template as<device::UInt2>();
  uint32_t b[kRowsTiles][2];
  GEN_UNROLL
  for (int32_t n = 0; n < kRowsTiles; ++n) weights[n].fragment(0, b[n]);
  GEN_UNROLL
  for (int32_t m = 0; m < row_groups(t); ++m) {
    if (m >= has.groups) continue;
    uint32_t a[4];
    x_fragment<t>(x, m * 16, quarter, a);
    const device::UInt2 low = pairs[(m * 16 + lane_of_warp() / 4) * 4 + quarter];
    const device::UInt2 high = pairs[(m * 16 + 8 + lane_of_warp() / 4) * 4 + quarter];
    const float x_scale[2] = {float_from_bits(low.x), float_from_bits(high.x)};
    const int32_t x_sum[2] = {static_cast<int32_t>(low.y), static_cast<int32_t>(high.y)};
    GEN_UNROLL
    for (int32_t n = 0; n < kRowsTiles; ++n) {
      if (n >= has.tiles) continue;
      int32_t product[4] = {};
      device::mma_s8(product, a, b[n]);
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        const float scale = weights[n].scale(i % 2) * x_scale[i / 2];
        sums[n][m][i] = multiply_add(scale, static_cast<float>(product[i]), sums[n][m][i]);
        if constexpr (t.minima) {
          const float minimum = weights[n].minimum_scale(i % 2) * x_scale[i / 2];
          sums[n][m][i] = multiply_add(minimum, static_cast<float>(x_sum[i / 2]), sums[n][m][i]);
        }
      }
    }
  }
}

/// Adds a quarter of a block of 256 to the sums of the block.
template <Traits t>
GEN_DEVICE void add_quarter_of_256(const Shared<uint8_t>& x, int32_t quarter, const WarpShare& has,
                                   const WarpQuarters<t>& weights, Products<float, t>& scaled,
                                   Products<int32_t, t>& minima) {
  const Shared<device::UInt2> pairs =
      x.part(rest_offset(t), static_cast<size_t>(rows_of_block(t) * rest_stride(t)))
          .template as<device::UInt2>();
  GEN_UNROLL
  for (int32_t part = 0; part < 2; ++part) {
    const int32_t unit = 2 * quarter + part;
    uint32_t b[kRowsTiles][2];
    GEN_UNROLL
    for (int32_t n = 0; n < kRowsTiles; ++n) weights[n].fragment(part, b[n]);
    GEN_UNROLL
    for (int32_t m = 0; m < row_groups(t); ++m) {
      if (m >= has.groups) continue;
      uint32_t a[4];
      x_fragment<t>(x, m * 16, unit, a);
      int32_t x_sums[2][2] = {};  // of each 16 columns of rows g and g + 8
      if constexpr (t.minima) {
        GEN_UNROLL
        for (int32_t i = 0; i < 2; ++i) {
          const device::UInt2 two = pairs[(m * 16 + 8 * i + lane_of_warp() / 4) * 8 + unit];
          x_sums[i][0] = static_cast<int32_t>(two.x);
          x_sums[i][1] = static_cast<int32_t>(two.y);
        }
      }
      GEN_UNROLL
      for (int32_t n = 0; n < kRowsTiles; ++n) {
        if (n >= has.tiles) continue;
        GEN_UNROLL
        for (int32_t half = 0; half < 32 / t.run; ++half) {
          int32_t product[4] = {};
          if constexpr (t.run == 32) {
            device::mma_s8(product, a, b[n]);
          } else {
            device::mma_s8_k16(product, {a[2 * half], a[2 * half + 1]}, b[n][half]);
          }
          const int32_t run = part * (32 / t.run) + half;
          GEN_UNROLL
          for (int32_t i = 0; i < 4; ++i) {
            const auto scale = static_cast<float>(weights[n].run_scale(i % 2, run));
            scaled[n][m][i] = multiply_add(static_cast<float>(product[i]), scale, scaled[n][m][i]);
            if constexpr (t.minima) {
              const int32_t x_sum =
                  t.run == 32 ? x_sums[i / 2][0] + x_sums[i / 2][1] : x_sums[i / 2][half];
              minima[n][m][i] += weights[n].run_minimum(i % 2, run) * x_sum;
            }
          }
        }
      }
    }
  }
}

/// Adds the sums of a block of 256.
template <Traits t>
GEN_DEVICE void add_block_of_256(const Shared<uint8_t>& x, const WarpShare& has,
                                 const uint8_t* const (&steps)[kRowsTiles],
                                 const Products<float, t>& scaled,
                                 const Products<int32_t, t>& minima, Products<float, t>& sums) {
  const Shared<float> scales =
      x.part(scales_offset(t), static_cast<size_t>(rows_of_block(t) * 4)).template as<float>();
  GEN_UNROLL
  for (int32_t n = 0; n < kRowsTiles; ++n) {
    if (n >= has.tiles) continue;
    BlockScales<t> weight;
    weight.load(steps[n]);
    GEN_UNROLL
    for (int32_t m = 0; m < row_groups(t); ++m) {
      if (m >= has.groups) continue;
      const float low = scales[m * 16 + lane_of_warp() / 4];
      const float high = scales[m * 16 + 8 + lane_of_warp() / 4];
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        const float x_scale = i < 2 ? low : high;
        sums[n][m][i] = multiply_add(weight.d[i % 2] * x_scale, scaled[n][m][i], sums[n][m][i]);
        if constexpr (t.minima) {
          sums[n][m][i] = multiply_add(-(weight.dmin[i % 2] * x_scale),
                                       static_cast<float>(minima[n][m][i]), sums[n][m][i]);
        }
      }
    }
  }
}

/// Adds a step. The fragments of its first quarter have been loaded into `next`.
template <Traits t>
GEN_DEVICE void add_step(const QuantRowsView& of, const Shared<uint8_t>& x, int32_t step,
                         const WarpShare& has, const uint8_t* const (&steps)[kRowsTiles],
                         WarpQuarters<t>& next, Products<float, t>& sums) {
  Products<float, t> scaled = {};
  Products<int32_t, t> minima = {};
  GEN_NO_UNROLL
  for (int32_t quarter = 0; quarter < kTileQuarters; ++quarter) {
    if (t.block == 32 && step * kTileQuarters + quarter >= of.n_blocks) break;
    WarpQuarters<t> now;
    GEN_UNROLL
    for (int32_t n = 0; n < kRowsTiles; ++n) {
      now[n] = next[n];
      if (quarter + 1 < kTileQuarters) next[n].load(steps[n], quarter + 1);
    }
    if constexpr (t.block == 32) {
      add_block_of_32<t>(x, quarter, has, now, sums);
    } else {
      add_quarter_of_256<t>(x, quarter, has, now, scaled, minima);
    }
  }
  if constexpr (t.block != 32) add_block_of_256<t>(x, has, steps, scaled, minima, sums);
}

/// Of the type of a row of kTraits.
template <size_t kIndex>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRowsThreads) linear_quant_rows_kernel(QuantRowsView of) {
  after_predecessor();
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr int32_t kRows = rows_of_block(t);
  const int64_t first = int64_t{block_x()} * kRows;
  const int64_t left = of.end.y.rows - first;
  const int32_t n_rows = left < kRows ? static_cast<int32_t>(left) : kRows;
  const bool gated = of.end.gated;
  const int32_t tile = (block_y() * kRowsWarps + warp_of_block()) * (gated ? 1 : kRowsTiles);
  WarpShare has = {(n_rows + 15) / 16, 0};
  if (tile < of.n_tiles) has.tiles = gated || tile + 1 < of.n_tiles ? 2 : 1;
  // Of the step at hand; a warp without tiles reads the first one for nothing.
  const uint8_t* steps[kRowsTiles];
  const size_t at = static_cast<size_t>(has.tiles > 0 ? tile : 0) * of.tile_bytes;
  steps[0] = of.tiles + at;
  steps[1] = gated ? of.up_tiles + at : of.tiles + at + (has.tiles == 2 ? of.tile_bytes : 0);

  constexpr auto kStage = static_cast<size_t>(stage_bytes(t));
  Products<float, t> sums = {};
  copy_step<t>(of, first, n_rows, 0, dynamic_shared<uint8_t>(0, kStage));
  device::commit_copies();
  for (int32_t step = 0; step < of.n_steps; ++step) {
    if (step + 1 < of.n_steps) {
      copy_step<t>(of, first, n_rows, step + 1,
                   dynamic_shared<uint8_t>(static_cast<size_t>((step + 1) % 2) * kStage, kStage));
    }
    device::commit_copies();
    WarpQuarters<t> weights;
    GEN_UNROLL
    for (int32_t n = 0; n < kRowsTiles; ++n) weights[n].load(steps[n], 0);
    device::wait_copies<1>();
    sync_threads();
    if (has.tiles > 0) {
      const Shared<uint8_t> x =
          dynamic_shared<uint8_t>(static_cast<size_t>(step % 2) * kStage, kStage);
      add_step<t>(of, x, step, has, steps, weights, sums);
    }
    GEN_UNROLL
    for (int32_t n = 0; n < kRowsTiles; ++n) steps[n] += step_bytes(t);
    sync_threads();  // the step after the next one goes where this one lies
  }

  // Where x lay; all have passed the barrier of the last step.
  const WarpSums<kRowsTiles * kTileOutputs> ordered(warp_of_block(), kRows);
  GEN_UNROLL
  for (int32_t n = 0; n < kRowsTiles; ++n) {
    GEN_UNROLL
    for (int32_t m = 0; m < row_groups(t); ++m) ordered.put(m * 16, n * kTileOutputs, sums[n][m]);
  }
  sync_warp();
  const int32_t outputs = gated ? kTileOutputs : kRowsTiles * kTileOutputs;
  GEN_NO_UNROLL
  for (int32_t i = lane_of_warp(); i < n_rows * outputs; i += 32) {
    const int32_t row = i / outputs;
    const int32_t within = i % outputs;
    const int64_t output = int64_t{tile} * kTileOutputs + within;
    if (output >= of.end.rows) continue;
    const float up = gated ? ordered.get(row, kTileOutputs + within) : 0.0F;
    finish_output(of.end, first + row, output, ordered.get(row, within), up);
  }
}

template <size_t kIndex>
Status launch_quant_rows(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                         const WeightSegment& weight, const WeightSegment* up) {
  constexpr Traits t = quant::kTraits[kIndex];
  const QuantRowsView of = {x,
                            end,
                            weight.data,
                            up != nullptr ? up->data : nullptr,
                            tile_bytes(t, x.cols),
                            static_cast<int32_t>(tiles_of(weight.rows)),
                            static_cast<int32_t>(tile_steps(t, x.cols)),
                            static_cast<int32_t>(x.cols / t.block)};
  const int32_t tiles = kRowsWarps * (end.gated ? 1 : kRowsTiles);  // of a block
  device::Dim3 grid = grid_of(end.y.rows, rows_of_block(t));
  grid.y = static_cast<unsigned>((of.n_tiles + tiles - 1) / tiles);
  return run_kernel(context, "linear_rows", linear_quant_rows_kernel<kIndex>, grid, kRowsThreads,
                    shared_bytes(t), of);
}

/// The kernel of one of the types with blocks of kBlock.
template <int kBlock, size_t kIndex = 0>
Status linear_rows_of(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                      const WeightSegment& weight, const WeightSegment* up) {
  if constexpr (kIndex == sizeof(quant::kTraits) / sizeof(quant::kTraits[0])) {
    return error(Code::kUnsupported, "weights of type %s have no kernel", dtype_name(weight.type));
  } else {
    constexpr Traits kTraits = quant::kTraits[kIndex];
    if constexpr (kTraits.block == kBlock) {
      if (weight.type == kTraits.type) {
        return launch_quant_rows<kIndex>(context, x, end, weight, up);
      }
    }
    return linear_rows_of<kBlock, kIndex + 1>(context, x, end, weight, up);
  }
}

}  // namespace gen::cuda
