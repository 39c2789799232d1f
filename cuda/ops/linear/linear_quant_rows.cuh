// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights for many rows, on the integer units of tensor cores, with the bits
// of linear_quant_few.cuh; see quant_rows_step.cuh. Rows lie one after another, or are gathered
// (cuda/ops/experts).
//
//   Work    A block of threads is eight tiles, 64 outputs (of a gated product 32 and their gates),
//           by 128, 64 or 32 rows of x. A warp has two or four tiles and 32 or 16 rows. A step of
//           the tiles, as they lie in memory, and of x comes through shared memory, one step (128
//           or 256 columns) ahead of the products. Each product of 16 x 8 x 32, or 16 for runs of
//           16, starts from a constant that makes its sum a float (exact_sum()). It is added at
//           once to the float32 sums of the lanes: a subtraction, a product of two scales for
//           blocks of 32, and a multiply-add each. Minima of a block of 256 times sums of x are a
//           product of float16: integers up to 135 and 2032, whose sum is below 2^24, and so exact.
//   Bytes   the tiles once for the rows of a block, x once for every 64 outputs; adjacent blocks
//           have the same weights, so that most of this comes from the L2 cache.
//   Shared  two steps, 27 to 110 KiB.
//   Bound   sm_90: at least 8 float instructions, of blocks of 32 12, go with each product of 4096,
//           two or three clock cycles of a multiprocessor; so they, not the tensor cores, are the
//           limit, at a third to a half of their rate.
#pragma once

#include "cuda/ops/linear/quant_rows_step.cuh"
#include "cuda/ops/linear/quant_segment.cuh"
#include "cuda/ops/linear/warp_sums.cuh"

namespace gen::cuda {

/// Rows one after another.
struct AdjacentRows {
  uint32_t row_bytes;  // a size_t would cost a register too many

  /// Where row `i` begins.
  [[nodiscard]] GEN_DEVICE size_t begin(int32_t i) const {
    return static_cast<size_t>(i) * row_bytes;
  }
  /// The address in row `first` + i of what is `at` begin(first) in the rows.
  [[nodiscard]] GEN_DEVICE const uint8_t* in_row(const uint8_t* at, int32_t, int32_t i) const {
    return at + static_cast<size_t>(i) * row_bytes;
  }
};

/// Rows of a block of threads as a thread copies them, a step after another; rows behind the last
/// become zeros.
template <Traits t, RowsShape s, typename Places>
class RowsOfBlock {
 public:
  /// `rows`: where the rows begin that `places` finds.
  GEN_DEVICE RowsOfBlock(const PackedRows& x, const uint8_t* rows, const Places& places, int32_t n)
      : places_(places),
        cols_(static_cast<int32_t>(x.cols)),
        n_(n),
        column_(thread_x() % kPieces * 16) {
    q_ = rows + places.begin(thread_x() / kPieces) + (t.block == 32 ? x.at.q8 : x.at.q8k) + column_;
    if constexpr (kRest > 0) {
      rest_ = rows + places.begin(thread_x() / kRest) +
              (t.block == 32 ? x.at.q8_pairs : x.at.q8k_sums) + thread_x() % kRest * 16;
    }
    scale_ = rows + places.begin(thread_x()) + x.at.q8k_scales;
  }

  /// Starts to copy a step; the next one follows.
  GEN_DEVICE void copy(const Shared<uint8_t>& to) {
    constexpr RowsStage kAt = rows_stage(t, s);
    copy_pieces<kPieces>(to, kAt.x, x_stride(t), q_, column_ < cols_);
    if constexpr (kRest > 0) copy_pieces<kRest>(to, kAt.rest, rest_stride(t), rest_, true);
    if (t.block != 32 && thread_x() < kRows) {
      device::copy_async4(to, kAt.scales + thread_x() * 4, places_.in_row(scale_, thread_x(), 0),
                          thread_x() < n_);
    }
    column_ += step_cols(t);
    q_ += step_cols(t);
    rest_ += rest_bytes(t);
    scale_ += 4;
  }

 private:
  static constexpr int32_t kRows = block_rows(s);
  static constexpr int32_t kPieces = step_cols(t) / 16;
  static constexpr int32_t kRest = rest_bytes(t) / 16;

  /// `pieces` of 16 bytes of each row, from the thread's first one on.
  template <int32_t pieces>
  GEN_DEVICE void copy_pieces(const Shared<uint8_t>& to, int32_t at, int32_t stride,
                              const uint8_t* from, bool valid) const {
    constexpr int32_t kAtOnce = kRowsThreads / pieces;
    const int32_t first = thread_x() / pieces;
    if (kRows < kAtOnce && first >= kRows) return;
    at += first * stride + thread_x() % pieces * 16;
    GEN_UNROLL
    for (int32_t i = 0; i < kRows; i += kAtOnce) {
      device::copy_async16(to, at + i * stride, places_.in_row(from, first, i),
                           valid && first + i < n_);
    }
  }

  Places places_;
  int32_t cols_;
  int32_t n_;
  int32_t column_;
  const uint8_t* q_;
  const uint8_t* rest_ = nullptr;
  const uint8_t* scale_;
};

/// Of each of the two matrices of a gated product.
constexpr int32_t tiles_of_block(bool gated) noexcept {
  return gated ? kRowsTiles / 2 : kRowsTiles;
}

/// The work of a block of threads: the products of its eight tiles from `first_tile` on, of gated
/// products four and their gates, with `n_rows` rows of x. It waits for the predecessor after it
/// has asked for the first weights. `finish(row, output, sum, up)` receives the sums, in any order.
template <Traits t, RowsShape s, typename Places, typename Finish>
GEN_DEVICE void multiply_rows(const QuantSegment& of, int32_t first_tile, const uint8_t* x,
                              const Places& places, int32_t n_rows, const Finish& finish) {
  constexpr auto kStage = static_cast<size_t>(rows_stage(t, s).bytes);
  const int32_t warp = warp_of_block();
  const bool gated = of.end.gated;
  const int32_t block_tiles = tiles_of_block(gated);

  // The tile that the warp copies. Indices beyond the last repeat it; the results are not used.
  const bool up = warp >= block_tiles;
  const int32_t wanted = first_tile + (up ? warp - block_tiles : warp);
  const int32_t copied = wanted < of.n_tiles ? wanted : of.n_tiles - 1;
  const uint8_t* from = (up ? of.up_tiles : of.tiles) +
                        static_cast<size_t>(copied) * of.tile_bytes + lane_of_warp() * 16;
  RowsOfBlock<t, s, Places> rows(of.x, x, places, n_rows);
  const auto copy_tile = [&](const Shared<uint8_t>& to) {
    copy_tile_step<t>(to, warp * step_bytes(t), from);
    from += step_bytes(t);
  };
  const auto stage = [&](int32_t i) {
    return dynamic_shared<uint8_t>(static_cast<size_t>(i % 2) * kStage, kStage);
  };

  // What the warp has: gates come first.
  constexpr int32_t kSide = kRowsTiles / s.tiles;
  const int32_t own_tile = warp % kSide * (gated ? s.tiles / 2 : s.tiles);
  int32_t tiles[static_cast<size_t>(s.tiles)];
  GEN_UNROLL
  for (int32_t n = 0; n < s.tiles; ++n) {
    const bool second = gated && n >= s.tiles / 2;
    tiles[n] = step_bytes(t) * (own_tile + (second ? block_tiles + n - s.tiles / 2 : n));
  }
  const int32_t own_row = warp / kSide * s.groups * 16;
  const bool any = own_row < n_rows;

  Products<float, s> sums = {};
  copy_tile(stage(0));
  after_predecessor();
  rows.copy(stage(0));
  device::commit_copies();
  for (int32_t step = 0; step < of.n_steps; ++step) {
    device::wait_copies<0>();
    sync_threads();  // all have used the step before, so it may be overwritten
    if (step + 1 < of.n_steps) {
      const Shared<uint8_t> to = stage(step + 1);
      copy_tile(to);
      rows.copy(to);
      device::commit_copies();
    }
    if (!any) continue;
    const Shared<uint8_t> bytes = stage(step);
    add_step<t, s>({bytes, own_row, tiles}, of.n_blocks - step * (step_cols(t) / t.block), sums);
  }

  sync_threads();  // the sums overwrite the steps
  const WarpSums<s.tiles * kTileOutputs> ordered(warp, s.groups * 16);
  GEN_UNROLL
  for (int32_t n = 0; n < s.tiles; ++n) {
    GEN_UNROLL
    for (int32_t m = 0; m < s.groups; ++m) ordered.put(m * 16, n * kTileOutputs, sums[n][m]);
  }
  sync_warp();
  const int32_t outputs = s.tiles * kTileOutputs / (gated ? 2 : 1);
  const int64_t own_output = int64_t{first_tile + own_tile} * kTileOutputs;
  GEN_NO_UNROLL
  for (int32_t i = lane_of_warp(); i < s.groups * 16 * outputs; i += 32) {
    const int32_t row = i / outputs;
    const int32_t within = i % outputs;
    const int64_t output = own_output + within;
    if (own_row + row >= n_rows || output >= of.end.rows) continue;
    const float second = gated ? ordered.get(row, outputs + within) : 0.0F;
    finish(own_row + row, output, ordered.get(row, within), second);
  }
}

/// Of the type of a row of kTraits and a shape of kRowShapes.
template <size_t kIndex, size_t kShape>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRowsThreads, 2) linear_quant_rows_kernel(QuantSegment of) {
  constexpr RowsShape s = kRowShapes[kShape];
  constexpr int32_t kRows = block_rows(s);
  const int64_t first = int64_t{block_x()} * kRows;
  const int64_t left = of.end.y.rows - first;
  const int32_t n_rows = left < kRows ? static_cast<int32_t>(left) : kRows;
  const uint8_t* const x = of.x.data + static_cast<size_t>(first) * of.x.at.bytes;
  const auto finish = [&](int32_t row, int64_t output, float sum, float up) {
    finish_many(of.end, first + row, output, sum, up);
  };
  multiply_rows<quant::kTraits[kIndex], s>(of, block_y() * tiles_of_block(of.end.gated), x,
                                           AdjacentRows{static_cast<uint32_t>(of.x.at.bytes)},
                                           n_rows, finish);
}

/// The shape: the largest blocks that fill the device, with no more rows than needed.
template <size_t kIndex, size_t kShape = 0>
Status launch_quant_rows(const OpContext& context, const QuantSegment& of) {
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr RowsShape s = kRowShapes[kShape];
  static_assert(rows_shared_bytes(t, s) >=
                kRowsWarps * WarpSums<s.tiles * 8>::bytes(s.groups * 16));
  const int32_t tiles = tiles_of_block(of.end.gated);
  device::Dim3 grid = grid_of(of.end.y.rows, block_rows(s));
  grid.y = static_cast<unsigned>((of.n_tiles + tiles - 1) / tiles);
  if constexpr (kShape + 1 < sizeof(kRowShapes) / sizeof(kRowShapes[0])) {
    const bool few = of.end.y.rows <= block_rows(kRowShapes[kShape + 1]);
    if (few || int64_t{grid.x} * grid.y < context.processors ||
        rows_shared_bytes(t, s) > context.shared_bytes) {
      return launch_quant_rows<kIndex, kShape + 1>(context, of);
    }
  }
  return run_kernel(context, "linear_rows", linear_quant_rows_kernel<kIndex, kShape>, grid,
                    kRowsThreads, rows_shared_bytes(t, s), of);
}

/// The kernel of one of the types with blocks of kBlock.
template <int kBlock>
Status linear_rows_of(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                      const WeightSegment& weight, const WeightSegment* up) {
  return launch_segment<kBlock>(x, end, weight, up, [&]<size_t kIndex>(const QuantSegment& of) {
    return launch_quant_rows<kIndex>(context, of);
  });
}

}  // namespace gen::cuda
