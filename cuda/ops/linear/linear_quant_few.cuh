// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights for few rows: sum_c x[t, c] W[n, c], W in tiles (weight_tiles.h), x
// in 8 bits (activation_rows.h), up to eight rows, on the integer units of tensor cores.
//
//   Blocks of 32:   sum over blocks b ascending of  fma(d[n, b] s[t, b], i, sum)
//   Blocks of 256:  the same with  d[n, b] s[t, b]  and  sum over runs r ascending of
//                   fma(i, scale[n, b, r], sum)
//   with i = sum_c q_w q_x - zero sum_c q_x, exact in integers; of types with minima another term
//   follows for each block, see FewTerms. The order is that of engine/cpu/linear/linear_scalar.cpp,
//   and so are the bits: of one row or eight, whatever is beside them, and on every device.
//
//   Work    A block of threads is two tiles, 16 outputs; of a gated product one and its gates. Each
//           of its warps takes a step of both at a time: their outputs are the rows of a, x is the
//           columns of b, eight rows or fewer. A lane makes the terms of two outputs and two rows.
//           Then the warp receives the running sums from the warp of the step before, adds its
//           terms, blocks ascending, and passes the sums to the warp of the next step. This is the
//           only serial chain; all other work of a step is done before.
//   Bytes   the tiles once, x once for every two of them, mostly from the L1 cache. A warp copies
//           its steps of both into a ring of its own, one or two steps ahead.
//   Shared  for each warp a ring of two or three steps (few_stages()), up to 12 KiB, and 512 bytes.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/ops/linear/quant_segment.cuh"
#include "cuda/ops/weight/weight_fragments.cuh"

namespace gen::cuda {

using quant::Traits;

constexpr int32_t kFewQuantWarps = 8;  // at most
constexpr int32_t kFewTiles = 2;

/// Steps per warp in shared memory.
constexpr int32_t few_stages(const Traits& t) noexcept { return t.block == 32 ? 3 : 2; }

/// A stage: two tiles' step, then rows of int8, 16 bytes apart so that eight of them lie in
/// different banks, then {scale, sum} of each block of 32, or the sums of 16 runs, as they lie in
/// the rows, then scales of blocks of 256.
struct FewStage {
  int32_t x;
  int32_t rest;
  int32_t scales;
  int32_t bytes;
};
constexpr int32_t few_x_stride(const Traits& t) noexcept { return step_cols(t) + 16; }
constexpr int32_t few_rest_bytes(const Traits& t) noexcept { return t.block == 32 ? 32 : 64; }
constexpr int32_t few_rest_stride(const Traits& t) noexcept { return few_rest_bytes(t) + 16; }
constexpr FewStage few_stage(const Traits& t) noexcept {
  FewStage at = {};
  at.x = kFewTiles * step_bytes(t);
  at.rest = at.x + kMatvecRows * few_x_stride(t);
  at.scales = at.rest + kMatvecRows * few_rest_stride(t);
  at.bytes = at.scales + (t.block == 32 ? 0 : kMatvecRows * 4);
  return at;
}

/// A lane's share of 16 outputs by eight rows: element i is of output g + i / 2 * 8 and row
/// 2 t + i % 2.
struct alignas(16) FewSums {
  float at[4];
};
constexpr size_t few_shared_bytes(const Traits& t, int32_t warps) noexcept {
  return static_cast<size_t>(warps) *
         (32 * sizeof(FewSums) + static_cast<size_t>(few_stages(t) * few_stage(t).bytes));
}

/// The rows of x as a lane copies them, a step after another.
template <Traits t>
class FewRows {
 public:
  GEN_DEVICE FewRows(const PackedRows& x, int32_t n, int32_t step)
      : rows_(x.data + static_cast<size_t>(own_row()) * x.at.bytes +
              (t.block == 32 ? x.at.q8 : x.at.q8k)),
        apart_(static_cast<size_t>(kRowsAtOnce) * x.at.bytes),
        rest_(x.data + static_cast<size_t>(lane_of_warp() / kRest) * x.at.bytes +
              (t.block == 32 ? x.at.q8_pairs : x.at.q8k_sums) +
              static_cast<size_t>(step * few_rest_bytes(t) + lane_of_warp() % kRest * 16)),
        scale_(x.data + static_cast<size_t>(lane_of_warp()) * x.at.bytes + x.at.q8k_scales +
               static_cast<size_t>(step) * 4),
        column_(step * step_cols(t) + lane_of_warp() % kPieces * 16),
        cols_(static_cast<int32_t>(x.cols)),
        n_(n),
        to_(few_stage(t).x + own_row() * few_x_stride(t) + lane_of_warp() % kPieces * 16),
        rest_to_(few_stage(t).rest + lane_of_warp() / kRest * few_rest_stride(t) +
                 lane_of_warp() % kRest * 16),
        scale_to_(few_stage(t).scales + lane_of_warp() * 4) {}

  /// Starts to copy a step; the next one is `steps` further on.
  GEN_DEVICE void copy(const Shared<uint8_t>& to, int32_t steps) {
    const bool valid = column_ < cols_;
    const uint8_t* from = rows_ + (valid ? column_ : 0);
    GEN_UNROLL
    for (int32_t i = 0; i < kMatvecRows / kRowsAtOnce; ++i) {
      if (own_row() + i * kRowsAtOnce < n_) {
        device::copy_async16_again(to, to_ + i * kRowsAtOnce * few_x_stride(t), from, valid);
      }
      from += apart_;
    }
    if (lane_of_warp() / kRest < n_) device::copy_async16_again(to, rest_to_, rest_);
    if (t.block != 32 && lane_of_warp() < n_) device::copy_async4(to, scale_to_, scale_);
    column_ += steps * step_cols(t);
    rest_ += steps * few_rest_bytes(t);
    scale_ += steps * 4;
  }

 private:
  static constexpr int32_t kPieces = step_cols(t) / 16;
  static constexpr int32_t kRowsAtOnce = 32 / kPieces;
  static constexpr int32_t kRest = few_rest_bytes(t) / 16;
  GEN_DEVICE static int32_t own_row() { return lane_of_warp() / kPieces; }

  const uint8_t* rows_;
  size_t apart_;
  const uint8_t* rest_;
  const uint8_t* scale_;
  int32_t column_;
  int32_t cols_;
  int32_t n_;
  int32_t to_;
  int32_t rest_to_;
  int32_t scale_to_;
};

/// Rows from `n` on are missing and become zeros.
template <Traits t>
GEN_DEVICE void clear_few_rows(const Shared<uint8_t>& stage, int32_t n) {
  constexpr FewStage at = few_stage(t);
  const auto clear = [&](int32_t first, int32_t end) {
    for (int32_t i = first + lane_of_warp() * 16; i < end; i += 32 * 16) {
      stage.subspan(i, 16).template as<device::UInt4>()[0] = device::UInt4{};
    }
  };
  clear(at.x + n * few_x_stride(t), at.rest);
  clear(at.rest + n * few_rest_stride(t), at.scales);
  if (t.block != 32 && lane_of_warp() >= n && lane_of_warp() < kMatvecRows) {
    stage.subspan(at.scales + lane_of_warp() * 4, 4).template as<float>()[0] = 0.0F;
  }
}

/// A stage as a lane reads it.
template <Traits t>
struct FewStep {
  static constexpr FewStage kAt = few_stage(t);
  const Shared<uint8_t>& bytes;

  [[nodiscard]] GEN_DEVICE StepInShared tile(int32_t i) const { return {bytes, i * step_bytes(t)}; }
  /// b of the products of units `unit` and unit + 1, of 32 columns each.
  GEN_DEVICE void x_fragments(int32_t unit, uint32_t (&b)[4]) const {
    const int32_t lane = lane_of_warp();
    device::load_matrices(b, bytes, kAt.x + lane % 8 * few_x_stride(t) + unit * 32 + lane / 8 * 16);
  }
  /// Of row i of the lane's two: pair `pair` of words of its rest.
  [[nodiscard]] GEN_DEVICE device::UInt2 rest(int32_t i, int32_t pair) const {
    return shared_at<device::UInt2>(
        bytes, kAt.rest + (lane_of_warp() % 4 * 2 + i) * few_rest_stride(t) + pair * 8);
  }
  [[nodiscard]] GEN_DEVICE float x_scale(int32_t i) const {
    return shared_at<float>(bytes, kAt.scales + (lane_of_warp() % 4 * 2 + i) * 4);
  }
};

/// The sums of a unit, outputs by rows.
template <Traits t>
GEN_DEVICE void multiply_few(const UnitCodes<t> (&codes)[kFewTiles], const uint32_t (&x)[2],
                             float (&values)[4]) {
  static_assert(t.run == 32);
  uint32_t low[2];
  uint32_t high[2];
  codes[0].fragment(low);
  codes[1].fragment(high);
  int32_t product[4];
  device::mma_s8(product, {low[0], high[0], low[1], high[1]}, x, kExactSum);
  GEN_UNROLL
  for (int32_t i = 0; i < 4; ++i) values[i] = exact_sum<t>(product[i]);
}

/// Terms of a step: of four blocks of 32, or of one of 256.
template <Traits t>
struct FewTerms {
  static constexpr int32_t kBlocks = t.block == 32 ? kTileQuarters : 1;

  /// Of blocks of 32.
  GEN_DEVICE void make_32(const FewStep<t>& step) {
    const int32_t g = lane_of_warp() / 4;
    uint32_t x[2][4];
    step.x_fragments(0, x[0]);
    step.x_fragments(2, x[1]);
    GEN_UNROLL
    for (int32_t quarter = 0; quarter < kTileQuarters; ++quarter) {
      UnitCodes<t> codes[kFewTiles];
      float scale[kFewTiles];
      float minimum[kFewTiles] = {};
      GEN_UNROLL
      for (int32_t i = 0; i < kFewTiles; ++i) {
        const StepInShared tile = step.tile(i);
        codes[i].load(tile, quarter, 0);
        const int32_t at = kTileQuarters * g + quarter;
        if constexpr (t.scale == quant::ScaleKind::kE8M0) {
          scale[i] = stored_scale<t>(tile.load1(d_offset(t) + at));
        } else {
          scale[i] = stored_scale<t>(tile.load2(d_offset(t) + 2 * at));
        }
        if constexpr (t.minima) {
          minimum[i] = f16_to_f32(static_cast<uint16_t>(tile.load2(dmin_offset(t) + 2 * at)));
        }
      }
      const uint32_t b[2] = {x[quarter / 2][quarter % 2 * 2], x[quarter / 2][quarter % 2 * 2 + 1]};
      multiply_few<t>(codes, b, value[quarter]);
      GEN_UNROLL
      for (int32_t row = 0; row < 2; ++row) {
        const device::UInt2 pair = step.rest(row, quarter);
        const float x_scale = float_from_bits(pair.x);
        GEN_UNROLL
        for (int32_t i = 0; i < kFewTiles; ++i) {
          factor[quarter][2 * i + row] = scale[i] * x_scale;
          if constexpr (t.minima) low_factor[quarter][2 * i + row] = minimum[i] * x_scale;
        }
        if constexpr (t.minima) {
          low_value[quarter][row] = static_cast<float>(static_cast<int32_t>(pair.y));
        }
      }
    }
  }

  /// Of a block of 256.
  GEN_DEVICE void make_256(const FewStep<t>& step) {
    const int32_t g = lane_of_warp() / 4;
    int32_t minima[4] = {};
    GEN_UNROLL
    for (int32_t i = 0; i < 4; ++i) value[0][i] = 0.0F;
    GEN_UNROLL
    for (int32_t quarter = 0; quarter < kTileQuarters; ++quarter) {
      uint32_t runs[kFewTiles];
      GEN_UNROLL
      for (int32_t i = 0; i < kFewTiles; ++i) {
        const StepInShared tile = step.tile(i);
        const int32_t at = runs_offset(t) + run_bytes(t) * (kTileQuarters * g + quarter);
        runs[i] = run_bytes(t) == 4 ? tile.load4(at) : tile.load2(at);
      }
      uint32_t x[4];
      step.x_fragments(2 * quarter, x);
      GEN_UNROLL
      for (int32_t sub_block = 0; sub_block < 2; ++sub_block) {
        UnitCodes<t> codes[kFewTiles];
        GEN_UNROLL
        for (int32_t i = 0; i < kFewTiles; ++i) codes[i].load(step.tile(i), quarter, sub_block);
        device::UInt2 x_sums[2] = {};
        if constexpr (t.minima) {
          x_sums[0] = step.rest(0, 2 * quarter + sub_block);
          x_sums[1] = step.rest(1, 2 * quarter + sub_block);
        }
        add_runs(codes, runs, sub_block, {x[2 * sub_block], x[2 * sub_block + 1]}, x_sums, minima);
      }
    }
    GEN_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const StepInShared tile = step.tile(i / 2);
      const float x_scale = step.x_scale(i % 2);
      factor[0][i] = half(tile, d_offset(t) + 2 * g) * x_scale;
      if constexpr (t.minima) {
        low_factor[0][i] = -(half(tile, dmin_offset(t) + 2 * g) * x_scale);
        low_value[0][i] = static_cast<float>(minima[i]);
      }
    }
  }

  /// Adds 32 columns to a block of 256.
  GEN_DEVICE void add_runs(const UnitCodes<t> (&codes)[kFewTiles],
                           const uint32_t (&runs)[kFewTiles], int32_t sub_block,
                           const uint32_t (&x)[2], const device::UInt2 (&x_sums)[2],
                           int32_t (&minima)[4]) {
    uint32_t low[2];
    uint32_t high[2];
    codes[0].fragment(low);
    codes[1].fragment(high);
    GEN_UNROLL
    for (int32_t half = 0; half < 32 / t.run; ++half) {
      int32_t product[4];
      if constexpr (t.run == 32) {
        device::mma_s8(product, {low[0], high[0], low[1], high[1]}, x, kExactSum);
      } else {
        device::mma_s8_k16(product, {low[half], high[half]}, x[half], kExactSum);
      }
      const int32_t run = sub_block * (32 / t.run) + half;
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        const auto scale = static_cast<float>(scale_of_run<t>(runs[i / 2], run));
        value[0][i] = multiply_add(exact_sum<t>(product[i]), scale, value[0][i]);
        if constexpr (t.minima) {
          const device::UInt2& sums = x_sums[i % 2];
          const auto x_sum = static_cast<int32_t>(t.run == 32 ? sums.x + sums.y
                                                  : half == 0 ? sums.x
                                                              : sums.y);
          minima[i] += minimum_of_run<t>(runs[i / 2], run) * x_sum;
        }
      }
    }
  }

  /// Adds those of the step's first `n` blocks.
  GEN_DEVICE void add_to(FewSums* sums, int32_t n) const {
    if (n >= kBlocks) {
      GEN_UNROLL
      for (int32_t block = 0; block < kBlocks; ++block) add_block(sums, block);
    } else {
      GEN_UNROLL
      for (int32_t block = 0; block < kBlocks; ++block) {
        if (block < n) add_block(sums, block);
      }
    }
  }
  GEN_DEVICE void add_block(FewSums* sums, int32_t block) const {
    GEN_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      float& sum = sums->at[i];
      sum = multiply_add(factor[block][i], value[block][i], sum);
      if constexpr (t.minima) {
        const float low = low_value[block][t.block == 32 ? i % 2 : i];
        sum = multiply_add(low_factor[block][i], low, sum);
      }
    }
  }

  GEN_DEVICE static float half(const StepInShared& tile, int32_t i) {
    return stored_scale<t>(tile.load2(i));
  }

  float factor[static_cast<size_t>(kBlocks)][4];
  float value[static_cast<size_t>(kBlocks)][4];
  float low_factor[static_cast<size_t>(t.minima ? kBlocks : 1)][4];
  float low_value[static_cast<size_t>(t.minima ? kBlocks : 1)][4];
};

/// Of the type of a row of kTraits.
template <size_t kIndex>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kFewQuantWarps * 32, 2) linear_quant_few_kernel(QuantSegment of) {
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr int32_t kStages = few_stages(t);
  const auto n = static_cast<int32_t>(of.end.y.rows);
  const int32_t warp = warp_of_block();
  const int32_t warps = block_threads() / 32;
  const bool gated = of.end.gated;
  const int32_t tile = block_x() * (gated ? 1 : kFewTiles);
  // Indices beyond the last tile repeat the last one; the results are not used.
  const int32_t second = gated || tile + 1 == of.n_tiles ? tile : tile + 1;
  const size_t lane_at = static_cast<size_t>(warp * step_bytes(t) + lane_of_warp() * 16);
  const uint8_t* tiles[kFewTiles] = {
      of.tiles + static_cast<size_t>(tile) * of.tile_bytes + lane_at,
      (gated ? of.up_tiles : of.tiles) + static_cast<size_t>(second) * of.tile_bytes + lane_at};
  const Shared<FewSums> handed = dynamic_shared<FewSums>(0, static_cast<size_t>(warps) * 32);
  const auto stage = [&](int32_t i) {
    constexpr auto kBytes = static_cast<size_t>(few_stage(t).bytes);
    const auto first = static_cast<size_t>(warps) * 32 * sizeof(FewSums);
    return dynamic_shared<uint8_t>(first + static_cast<size_t>(warp * kStages + i) * kBytes,
                                   kBytes);
  };
  const auto copy_tiles = [&](const Shared<uint8_t>& to) {
    GEN_UNROLL
    for (int32_t i = 0; i < kFewTiles; ++i) {
      copy_tile_step<t>(to, i * step_bytes(t), tiles[i]);
      tiles[i] += warps * step_bytes(t);
    }
  };
  GEN_UNROLL
  for (int32_t i = 0; i + 1 < kStages; ++i) {
    if (warp + i * warps < of.n_steps) copy_tiles(stage(i));
  }
  FewRows<t> rows(of.x, n, warp);
  for (int32_t i = 0; i < kStages; ++i) clear_few_rows<t>(stage(i), n);
  after_predecessor();
  GEN_UNROLL
  for (int32_t i = 0; i + 1 < kStages; ++i) {
    if (warp + i * warps < of.n_steps) rows.copy(stage(i), warps);
    device::commit_copies();  // the first group includes the weights of all these steps
  }

  FewSums sums = {};
  int32_t now = 0;
  for (int32_t step = warp; step < of.n_steps; step += warps) {
    device::wait_copies<kStages - 2>();
    sync_warp();  // all have used the step before, so it may be overwritten
    const int32_t next = step + (kStages - 1) * warps;
    const int32_t to = now == 0 ? kStages - 1 : now - 1;
    if (next < of.n_steps) {
      copy_tiles(stage(to));
      rows.copy(stage(to), warps);
    }
    device::commit_copies();
    FewTerms<t> terms;
    const Shared<uint8_t> bytes = stage(now);
    if constexpr (t.block == 32) {
      terms.make_32({bytes});
    } else {
      terms.make_256({bytes});
    }
    if (warps > 1 && step > 0) {
      const int32_t from = warp == 0 ? warps - 1 : warp - 1;
      device::sync_some(static_cast<unsigned>(1 + from), 64);
      sums = handed[from * 32 + lane_of_warp()];
    }
    terms.add_to(&sums, of.n_blocks - step * FewTerms<t>::kBlocks);
    if (warps > 1 && step + 1 < of.n_steps) {
      handed[warp * 32 + lane_of_warp()] = sums;
      device::sync_some(static_cast<unsigned>(1 + warp), 64);
    }
    now = now + 1 == kStages ? 0 : now + 1;
  }

  if ((of.n_steps - 1) % warps != warp) return;
  GEN_NO_UNROLL
  for (int32_t i = 0; i < (gated ? 2 : 4); ++i) {
    const int32_t row = lane_of_warp() % 4 * 2 + i % 2;
    const int64_t output = (int64_t{tile} + i / 2) * kTileOutputs + lane_of_warp() / 4;
    if (row >= n || output >= of.end.rows) continue;
    const float sum = i == 0 ? sums.at[0] : i == 1 ? sums.at[1] : i == 2 ? sums.at[2] : sums.at[3];
    finish_output(of.end, row, output, sum, i == 0 ? sums.at[2] : sums.at[3]);
  }
}

/// Of up to eight rows. Where a device has little shared memory, blocks have fewer warps.
template <size_t kIndex>
Status launch_quant_few(const OpContext& context, const QuantSegment& of) {
  constexpr Traits t = quant::kTraits[kIndex];
  const device::Dim3 grid = grid_of(of.n_tiles, of.end.gated ? 1 : kFewTiles);
  int32_t warps = kFewQuantWarps;
  // More small blocks than large ones fit on the device, so that all of them start at once.
  if (static_cast<int32_t>(grid.x) > 2 * context.processors) warps /= 2;
  while (warps > 1 && few_shared_bytes(t, warps) > context.shared_bytes) warps /= 2;
  return run_kernel(context, "linear_few", linear_quant_few_kernel<kIndex>, grid, warps * 32,
                    few_shared_bytes(t, warps), of);
}

/// The kernel of one of the types with blocks of kBlock.
template <int kBlock>
Status linear_blocks(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                     const WeightSegment& weight, const WeightSegment* up) {
  return launch_segment<kBlock>(x, end, weight, up, [&]<size_t kIndex>(const QuantSegment& of) {
    return launch_quant_few<kIndex>(context, of);
  });
}

}  // namespace gen::cuda
