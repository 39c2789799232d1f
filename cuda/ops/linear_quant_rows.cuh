// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights for many rows, on the integer units of tensor cores: what
// linear_quant.cuh does for few, with the same bits. Sums within a block of 32, or a run of a block
// of 256, are integers and exact, so it does not show who adds them; what follows is added in its
// order, blocks and runs ascending, by the lane that has the sum.
//
//   Work    A block of threads is 64 rows of x. Where there is work for all of a device, its four
//           warps have these rows and two or four tiles of weights each; where there is not, 16 of
//           these rows each and the same two tiles. Of a gated product half of the tiles are gates.
//           A warp reads weights from global memory as fragments (weight_fragments.cuh), a quarter
//           of a step ahead. x comes through shared memory, one step (128 or 256 columns) ahead of
//           the products. Each product of 16 x 8 x 32, or 16 for runs of 16, starts from what makes
//           a float of its sum (exact_sum()); it goes at once into the float32 sums of the lanes: a
//           subtraction, a product of two scales, and a multiply-add each.
//   Bytes   the tiles once for every 64 rows, x once for the outputs of a block; neighbouring
//           blocks have the same weights, so that most of this comes from the second cache.
//   Shared  twice 12 or 22 KiB for steps, up to 37 KiB for sums in the end.
//   Bound   sm_90: at least 12 float instructions go with each product of 4096, three clock cycles
//           of a multiprocessor; so they, not the tensor cores, are the limit, at a third of their
//           rate.
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
constexpr int32_t kRows = 64;  // of a block

/// What a warp has: products of 16 rows, of each of its tiles. Wide warps differ in their tiles,
/// others in their rows.
constexpr int32_t row_groups(bool wide) noexcept {
  return wide ? kRows / 16 : kRows / 16 / kRowsWarps;
}
constexpr int32_t row_tiles(const Traits& t, bool wide) noexcept {
  return wide && t.block == 32 ? 4 : 2;
}

/// A step of x in shared memory: rows of int8, 16 bytes apart so that eight of them lie in
/// different banks, then the rest of the rows as it lies in them, 16 bytes apart for the same
/// reason: {scale, sum} of each block of 32, or the sums of 16 runs, and then scales, of a block of
/// 256.
constexpr int32_t x_stride(const Traits& t) noexcept { return step_cols(t) + 16; }
constexpr int32_t rest_bytes(const Traits& t) noexcept { return t.block == 32 ? 32 : 64; }
constexpr int32_t rest_stride(const Traits& t) noexcept { return rest_bytes(t) + 16; }
constexpr int32_t rest_offset(const Traits& t) noexcept { return kRows * x_stride(t); }
constexpr int32_t scales_offset(const Traits& t) noexcept {
  return rest_offset(t) + kRows * rest_stride(t);
}
constexpr int32_t stage_bytes(const Traits& t) noexcept {
  return scales_offset(t) + (t.block == 32 ? 0 : kRows * 4);
}
/// Two steps; in the end the sums of all warps.
template <Traits t, bool kWide>
using QuantSums = WarpSums<row_tiles(t, kWide) * kTileOutputs>;
template <Traits t, bool kWide>
constexpr size_t shared_bytes() noexcept {
  const size_t sums = kRowsWarps * QuantSums<t, kWide>::bytes(16 * row_groups(kWide));
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
  constexpr int32_t kPieces = step_cols(t) / 16;
  constexpr int32_t kRest = rest_bytes(t) / 16;
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
                             static_cast<size_t>(step * rest_bytes(t) + within),
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
template <typename T, Traits t, bool kWide>
using Products =
    Four<T>[static_cast<size_t>(row_tiles(t, kWide))][static_cast<size_t>(row_groups(kWide))];

template <Traits t, bool kWide>
using WarpQuarters = QuarterFragments<t>[static_cast<size_t>(row_tiles(t, kWide))];
template <Traits t, bool kWide>
using WarpSteps = const uint8_t * [static_cast<size_t>(row_tiles(t, kWide))];

/// Rows of the block that a warp has.
struct WarpRows {
  int32_t first;
  int32_t groups;  // of 16
};

/// The rest of the rows of a step in pairs of words.
template <Traits t>
GEN_DEVICE device::UInt2 rest_pair(const Shared<uint8_t>& x, int32_t row, int32_t i) {
  const Shared<device::UInt2> pairs =
      x.part(rest_offset(t), static_cast<size_t>(kRows * rest_stride(t)))
          .template as<device::UInt2>();
  return pairs[row * (rest_stride(t) / 8) + i];
}

/// Adds a block of 32: quarter `quarter` of a step.
template <Traits t, bool kWide>
GEN_DEVICE void add_block_of_32(const Shared<uint8_t>& x, int32_t quarter, const WarpRows& has,
                                const WarpQuarters<t, kWide>& weights,
                                Products<float, t, kWide>& sums) {
  constexpr int32_t kTiles = row_tiles(t, kWide);
  uint32_t b[static_cast<size_t>(kTiles)][2];
  GEN_UNROLL
  for (int32_t n = 0; n < kTiles; ++n) weights[n].fragment(0, b[n]);
  GEN_UNROLL
  for (int32_t m = 0; m < row_groups(kWide); ++m) {
    if (m >= has.groups) continue;
    uint32_t a[4];
    x_fragment<t>(x, has.first + m * 16, quarter, a);
    const int32_t row = has.first + m * 16 + lane_of_warp() / 4;
    const device::UInt2 low = rest_pair<t>(x, row, quarter);
    const device::UInt2 high = rest_pair<t>(x, row + 8, quarter);
    const float x_scale[2] = {float_from_bits(low.x), float_from_bits(high.x)};
    const int32_t x_sum[2] = {static_cast<int32_t>(low.y), static_cast<int32_t>(high.y)};
    GEN_UNROLL
    for (int32_t n = 0; n < kTiles; ++n) {
      int32_t product[4];
      device::mma_s8(product, a, b[n], kExactSum);
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        const float scale = weights[n].scale(i % 2) * x_scale[i / 2];
        sums[n][m][i] = multiply_add(scale, exact_sum<t>(product[i]), sums[n][m][i]);
        if constexpr (t.minima) {
          const float minimum = weights[n].minimum_scale(i % 2) * x_scale[i / 2];
          sums[n][m][i] = multiply_add(minimum, static_cast<float>(x_sum[i / 2]), sums[n][m][i]);
        }
      }
    }
  }
}

/// Adds a quarter of a block of 256 to the sums of the block.
template <Traits t, bool kWide>
GEN_DEVICE void add_quarter_of_256(const Shared<uint8_t>& x, int32_t quarter, const WarpRows& has,
                                   const WarpQuarters<t, kWide>& weights,
                                   Products<float, t, kWide>& scaled,
                                   Products<int32_t, t, kWide>& minima) {
  constexpr int32_t kTiles = row_tiles(t, kWide);
  GEN_UNROLL
  for (int32_t part = 0; part < 2; ++part) {
    const int32_t unit = 2 * quarter + part;
    uint32_t b[static_cast<size_t>(kTiles)][2];
    GEN_UNROLL
    for (int32_t n = 0; n < kTiles; ++n) weights[n].fragment(part, b[n]);
    GEN_UNROLL
    for (int32_t m = 0; m < row_groups(kWide); ++m) {
      if (m >= has.groups) continue;
      uint32_t a[4];
      x_fragment<t>(x, has.first + m * 16, unit, a);
      int32_t x_sums[2][2] = {};  // of each 16 columns of rows g and g + 8
      if constexpr (t.minima) {
        GEN_UNROLL
        for (int32_t i = 0; i < 2; ++i) {
          const device::UInt2 two =
              rest_pair<t>(x, has.first + m * 16 + 8 * i + lane_of_warp() / 4, unit);
          x_sums[i][0] = static_cast<int32_t>(two.x);
          x_sums[i][1] = static_cast<int32_t>(two.y);
        }
      }
      GEN_UNROLL
      for (int32_t n = 0; n < kTiles; ++n) {
        GEN_UNROLL
        for (int32_t half = 0; half < 32 / t.run; ++half) {
          int32_t product[4];
          if constexpr (t.run == 32) {
            device::mma_s8(product, a, b[n], kExactSum);
          } else {
            device::mma_s8_k16(product, {a[2 * half], a[2 * half + 1]}, b[n][half], kExactSum);
          }
          const int32_t run = part * (32 / t.run) + half;
          GEN_UNROLL
          for (int32_t i = 0; i < 4; ++i) {
            const auto scale = static_cast<float>(weights[n].run_scale(i % 2, run));
            scaled[n][m][i] = multiply_add(exact_sum<t>(product[i]), scale, scaled[n][m][i]);
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
template <Traits t, bool kWide>
GEN_DEVICE void add_block_of_256(const Shared<uint8_t>& x, const WarpRows& has,
                                 const WarpSteps<t, kWide>& steps,
                                 const Products<float, t, kWide>& scaled,
                                 const Products<int32_t, t, kWide>& minima,
                                 Products<float, t, kWide>& sums) {
  const Shared<float> scales =
      x.part(scales_offset(t), static_cast<size_t>(kRows * 4)).template as<float>();
  GEN_UNROLL
  for (int32_t n = 0; n < row_tiles(t, kWide); ++n) {
    BlockScales<t> weight;
    weight.load(steps[n]);
    GEN_UNROLL
    for (int32_t m = 0; m < row_groups(kWide); ++m) {
      if (m >= has.groups) continue;
      const float low = scales[has.first + m * 16 + lane_of_warp() / 4];
      const float high = scales[has.first + m * 16 + 8 + lane_of_warp() / 4];
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

/// Adds a step. The fragments of its first quarter have been loaded into `next`, where those of the
/// next step are in the end.
template <Traits t, bool kWide>
GEN_DEVICE void add_step(const QuantRowsView& of, const Shared<uint8_t>& x, int32_t step,
                         const WarpRows& has, const WarpSteps<t, kWide>& steps,
                         WarpQuarters<t, kWide>& next, Products<float, t, kWide>& sums) {
  constexpr int32_t kTiles = row_tiles(t, kWide);
  Products<float, t, kWide> scaled = {};
  Products<int32_t, t, kWide> minima = {};
  GEN_NO_UNROLL
  for (int32_t quarter = 0; quarter < kTileQuarters; ++quarter) {
    if (t.block == 32 && step * kTileQuarters + quarter >= of.n_blocks) break;
    WarpQuarters<t, kWide> now;
    const bool last = quarter + 1 == kTileQuarters;
    const bool more = !last || step + 1 < of.n_steps;
    GEN_UNROLL
    for (int32_t n = 0; n < kTiles; ++n) {
      now[n] = next[n];
      if (more) next[n].load(steps[n] + (last ? step_bytes(t) : 0), last ? 0 : quarter + 1);
    }
    if constexpr (t.block == 32) {
      add_block_of_32<t, kWide>(x, quarter, has, now, sums);
    } else {
      add_quarter_of_256<t, kWide>(x, quarter, has, now, scaled, minima);
    }
  }
  if constexpr (t.block != 32) {
    add_block_of_256<t, kWide>(x, has, steps, scaled, minima, sums);
  }
}

/// Blocks that a multiprocessor holds, by registers: Q2_K and Q5_K need most.
constexpr int32_t resident_blocks(const Traits& t, bool wide) noexcept {
  const bool most = t.block == 256 && t.minima && (shared_runs(t) || bits_above(t) > 0);
  return !wide ? 4 : most ? 2 : 3;
}

/// Of the type of a row of kTraits.
template <size_t kIndex, bool kWide>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRowsThreads, resident_blocks(quant::kTraits[kIndex], kWide))
    linear_quant_rows_kernel(QuantRowsView of) {
  after_predecessor();
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr int32_t kTiles = row_tiles(t, kWide);
  constexpr int32_t kOwnRows = 16 * row_groups(kWide);
  const int64_t first = int64_t{block_x()} * kRows;
  const int64_t left = of.end.y.rows - first;
  const int32_t n_rows = left < kRows ? static_cast<int32_t>(left) : kRows;
  const bool gated = of.end.gated;
  const int32_t tiles = gated ? kTiles / 2 : kTiles;  // of outputs
  const int32_t tile = (kWide ? block_y() * kRowsWarps + warp_of_block() : block_y()) * tiles;
  const int32_t own_first = kWide ? 0 : warp_of_block() * kOwnRows;
  const int32_t own_left = n_rows - own_first;
  const int32_t own_rows = own_left < 0 ? 0 : own_left < kOwnRows ? own_left : kOwnRows;
  const WarpRows has = {own_first, tile < of.n_tiles ? (own_rows + 15) / 16 : 0};
  // Of the step at hand. What lies behind the last tile is the last one for nothing.
  WarpSteps<t, kWide> steps;
  GEN_UNROLL
  for (int32_t n = 0; n < kTiles; ++n) {
    const bool up = gated && n >= kTiles / 2;
    const int32_t wanted = tile + (up ? n - kTiles / 2 : n);
    const int32_t there = wanted < of.n_tiles ? wanted : of.n_tiles - 1;
    steps[n] = (up ? of.up_tiles : of.tiles) + static_cast<size_t>(there) * of.tile_bytes;
  }

  constexpr auto kStage = static_cast<size_t>(stage_bytes(t));
  Products<float, t, kWide> sums = {};
  copy_step<t>(of, first, n_rows, 0, dynamic_shared<uint8_t>(0, kStage));
  device::commit_copies();
  WarpQuarters<t, kWide> weights;
  GEN_UNROLL
  for (int32_t n = 0; n < kTiles; ++n) weights[n].load(steps[n], 0);
  for (int32_t step = 0; step < of.n_steps; ++step) {
    if (step + 1 < of.n_steps) {
      copy_step<t>(of, first, n_rows, step + 1,
                   dynamic_shared<uint8_t>(static_cast<size_t>((step + 1) % 2) * kStage, kStage));
    }
    device::commit_copies();
    device::wait_copies<1>();
    sync_threads();
    if (has.groups > 0) {
      const Shared<uint8_t> x =
          dynamic_shared<uint8_t>(static_cast<size_t>(step % 2) * kStage, kStage);
      add_step<t, kWide>(of, x, step, has, steps, weights, sums);
    }
    GEN_UNROLL
    for (int32_t n = 0; n < kTiles; ++n) steps[n] += step_bytes(t);
    sync_threads();  // the step after the next one goes where this one lies
  }

  // Where x lay; all have passed the barrier of the last step.
  const QuantSums<t, kWide> ordered(warp_of_block(), kOwnRows);
  GEN_UNROLL
  for (int32_t n = 0; n < kTiles; ++n) {
    GEN_UNROLL
    for (int32_t m = 0; m < row_groups(kWide); ++m) {
      ordered.put(m * 16, n * kTileOutputs, sums[n][m]);
    }
  }
  sync_warp();
  const int32_t outputs = tiles * kTileOutputs;
  GEN_NO_UNROLL
  for (int32_t i = lane_of_warp(); i < own_rows * outputs; i += 32) {
    const int32_t row = i / outputs;
    const int32_t within = i % outputs;
    const int64_t output = int64_t{tile} * kTileOutputs + within;
    if (output >= of.end.rows) continue;
    const float up = gated ? ordered.get(row, outputs + within) : 0.0F;
    finish_output(of.end, first + own_first + row, output, ordered.get(row, within), up);
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
  const auto grid = [&](bool wide) {
    const int32_t tiles = row_tiles(t, wide) / (end.gated ? 2 : 1) * (wide ? kRowsWarps : 1);
    device::Dim3 blocks = grid_of(end.y.rows, kRows);
    blocks.y = static_cast<unsigned>((of.n_tiles + tiles - 1) / tiles);
    return blocks;
  };
  const device::Dim3 wide = grid(true);
  if (int64_t{wide.x} * wide.y >= 2 * int64_t{context.processors}) {
    return run_kernel(context, "linear_rows", linear_quant_rows_kernel<kIndex, true>, wide,
                      kRowsThreads, shared_bytes<t, true>(), of);
  }
  return run_kernel(context, "linear_rows", linear_quant_rows_kernel<kIndex, false>, grid(false),
                    kRowsThreads, shared_bytes<t, false>(), of);
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
