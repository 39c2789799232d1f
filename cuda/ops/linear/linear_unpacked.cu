// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights for very many rows, which are in bfloat16 (bf16_rows.h): weights
// are converted to bfloat16, one slice of outputs at a time, and multiplied (RowsProduct).
//   w is the value that its format defines, in float32, rounded to bfloat16; x is rounded to it,
//   too. Error of a product: |x w| times 2^-8. In 8 bits, as fewer rows take x, it is up to half of
//   a 127th of the block's largest |x| times |w|, for rows of like elements about four times that.
//   With a library the result of a row depends on the other rows.
//
//   Work    A warp has a step of a tile, a lane a quarter of it of one output. Neighbouring lanes
//           exchange halves, so that two of them write 32 bytes of a row at once.
//   Bytes   the tiles once, and 2 for each weight, written and read again. Slices are small enough
//           to stay in the L2 cache until they are read and overwritten.
#include "cuda/ops/linear/linear_quant.cuh"
#include "cuda/ops/linear/linear_rows_product.h"
#include "cuda/ops/linear/quant_segment.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
constexpr int32_t kWarps = kThreads / 32;
constexpr int64_t kSliceOutputs = 256;  // a slice has a multiple of as many
/// Outputs per slice: its weights take up to two thirds of the L2 cache. Fewer would leave
/// multiprocessors idle in the product. On an H100 a slice is 4,096 outputs of 4,096 columns, which
/// are 128 tiles of 256 by 128 for 1,024 rows.
int64_t slice_outputs(const OpContext& context, int64_t outputs, int64_t cols) {
  const int64_t most = static_cast<int64_t>(context.l2_bytes / 3) / cols + 1;
  const int64_t slices = (outputs + most - 1) / most;
  const int64_t each = (outputs + slices - 1) / slices;
  return (each + kSliceOutputs - 1) / kSliceOutputs * kSliceOutputs;
}

/// Tiles [first, first + n) of a matrix as rows of bfloat16.
struct UnpackView {
  const uint8_t* tiles;
  int64_t steps;  // of a tile
  int64_t all_steps;
  int32_t cols;
  uint16_t* to;
};

/// A step in device memory, read once.
struct StepInMemory {
  const uint8_t* step;
  [[nodiscard]] GEN_DEVICE device::UInt4 load16(int32_t i) const {
    return device::load_once16(step + i);
  }
  [[nodiscard]] GEN_DEVICE device::UInt2 load8(int32_t i) const {
    return device::load_constant8(step + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t load4(int32_t i) const {
    return device::load_constant4(step + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t load2(int32_t i) const {
    return *reinterpret_cast<const uint16_t*>(step + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t load1(int32_t i) const { return step[i]; }
};

/// Byte `i` of four, less the type's zero.
template <Traits t>
GEN_DEVICE float level_of_byte(uint32_t four, int32_t i) {
  constexpr uint32_t kTwo23 = 0x4B000000U;
  constexpr auto kZero = static_cast<float>((1 << 23) + t.zero);
  return float_from_bits(device::permute_bytes(four, kTwo23, 0x7440U | static_cast<uint32_t>(i))) -
         kZero;
}

/// 32 columns of a lane, sub-block `sub_block` of its quarter, in pairs.
template <Traits t>
GEN_DEVICE void unpack_sub_block(const LaneStep<t>& lane, int32_t sub_block,
                                 uint32_t (&pairs)[16]) {
  constexpr int32_t kRunQuads = (t.block == 32 ? 32 : t.run) / 4;
  GEN_UNROLL
  for (int32_t quad = 0; quad < 8; ++quad) {
    float scale = lane.scale();
    float minimum = 0.0F;
    if constexpr (t.block == 256) {
      const int32_t run = (sub_block * 8 + quad) / kRunQuads;
      scale = scale * static_cast<float>(lane.run_scale(run));
      if constexpr (t.minima) {
        minimum = lane.minimum_scale() * static_cast<float>(lane.run_minimum(run));
      }
    } else if constexpr (t.minima) {
      minimum = -lane.minimum_scale();
    }
    const uint32_t four = lane.values(sub_block, quad);
    GEN_UNROLL
    for (int32_t i = 0; i < 4; i += 2) {
      float low = scale * level_of_byte<t>(four, i);
      float high = scale * level_of_byte<t>(four, i + 1);
      if constexpr (t.minima) {
        low = low - minimum;
        high = high - minimum;
      }
      pairs[quad * 2 + i / 2] = device::pack_bf16(low, high);
    }
  }
}

template <size_t kIndex>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) unpack_tiles_kernel(UnpackView of) {
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr int32_t kSubBlocks = lane_sub_blocks(t);
  const int64_t index = int64_t{block_x()} * kWarps + warp_of_block();
  const bool any = index < of.all_steps;
  const int32_t lane = lane_of_warp();
  LaneStep<t> step;
  if (any) step.load(StepInMemory{of.tiles + index * step_bytes(t)}, lane);
  after_predecessor();
  if (!any) return;
  const int64_t output = index / of.steps * kTileOutputs + lane / kTileQuarters;
  const auto first = static_cast<int32_t>(index % of.steps) * step_cols(t);
  const int32_t quarter = lane % kTileQuarters;
  const bool odd = lane % 2 != 0;
  uint16_t* const row = of.to + output * of.cols + first;
  GEN_UNROLL
  for (int32_t sub_block = 0; sub_block < kSubBlocks; ++sub_block) {
    uint32_t pairs[16];
    unpack_sub_block<t>(step, sub_block, pairs);
    // Pieces of eight columns: of the even lane's quarter, then of the odd one's.
    GEN_UNROLL
    for (int32_t piece = 0; piece < 4; piece += 2) {
      uint32_t own[4];
      uint32_t other[4];
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        const uint32_t even_piece = pairs[piece * 4 + i];
        const uint32_t odd_piece = pairs[piece * 4 + 4 + i];
        own[i] = odd ? odd_piece : even_piece;
        other[i] = shuffle_xor(odd ? even_piece : odd_piece, 1);
      }
      GEN_UNROLL
      for (int32_t side = 0; side < 2; ++side) {
        const int32_t column = (quarter / 2 * 2 + side) * 32 * kSubBlocks + sub_block * 32 +
                               (piece + (odd ? 1 : 0)) * 8;
        if (first + column >= of.cols) continue;
        const bool mine = (side != 0) == odd;
        device::store16(row + column, {mine ? own[0] : other[0], mine ? own[1] : other[1],
                                       mine ? own[2] : other[2], mine ? own[3] : other[3]});
      }
    }
  }
}

/// Outputs [first, first + n) of a segment as rows of bfloat16; `first` is one of a tile's.
Status unpack(const OpContext& context, const PackedRows& x, const LinearEnd& end,
              const WeightSegment& weight, int64_t first, int64_t n, uint8_t* to) {
  const auto launch = [&]<size_t kIndex>(const QuantSegment& of) {
    const int64_t all = tiles_of(n) * of.n_steps;
    const UnpackView view = {of.tiles + static_cast<size_t>(first / kTileOutputs) * of.tile_bytes,
                             of.n_steps, all, static_cast<int32_t>(x.cols),
                             reinterpret_cast<uint16_t*>(to)};
    return run_kernel(context, "unpack", unpack_tiles_kernel<kIndex>, grid_of(all, kWarps),
                      kThreads, 0, view);
  };
  if (quant::find_traits(weight.type)->block == 32) {
    return launch_segment<32>(x, end, weight, nullptr, launch);
  }
  return launch_segment<256>(x, end, weight, nullptr, launch);
}

}  // namespace

Status linear_unpacked(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                       const WeightSegment& weight, const WeightSegment* up) {
  const int64_t each = slice_outputs(context, weight.rows, x.cols);
  // If both matrices of a gate are multiplied together, half as many outputs of each fill the
  // tiles.
  const int64_t whole = (up != nullptr ? 2 : 1) * kTileOutputs;
  const int64_t most = each < weight.rows ? each : (weight.rows + whole - 1) / whole * whole;
  const size_t row_bytes = static_cast<size_t>(x.cols) * sizeof(uint16_t);
  RowsProduct product(context, DType::kBF16, x, false);
  GEN_TRY(product.prepare(end, most, static_cast<size_t>(most) * row_bytes));
  const auto unpacked = [&](const WeightSegment& of, int64_t first, int64_t n, size_t at,
                            WeightSegment* out) {
    *out = {DType::kBF16, product.weights() + at, 0, n, row_bytes};
    return unpack(context, x, end, of, first, n, product.weights() + at);
  };
  const auto slice_end = [&](int64_t first, int64_t n) {
    LinearEnd sliced = end;
    sliced.first_row += first;
    sliced.rows = n;
    return sliced;
  };
  for (int64_t first = 0; first < weight.rows; first += each) {
    const int64_t n = weight.rows - first < each ? weight.rows - first : each;
    // A library multiplies one matrix at a time, so both use the same memory.
    const auto by_library = [&]() -> Result<bool> {
      const LinearEnd sliced = slice_end(first, n);
      for (const WeightSegment* of : {&weight, up}) {
        WeightSegment slice;
        if (of == nullptr) continue;
        GEN_TRY(unpacked(*of, first, n, 0, &slice));
        if (!product.sum(sliced, slice, of == up)) return false;
      }
      GEN_TRY(product.finish(sliced));
      return true;
    };
    if (product.has_library()) {
      GEN_ASSIGN(const bool done, by_library());
      if (done) continue;
    }
    // Our own kernel takes both matrices of a gate at once, with half as many outputs of each.
    const int64_t half = up == nullptr ? n : (n + 15) / 16 * kTileOutputs;
    for (int64_t at = first; at < first + n; at += half) {
      const int64_t here = first + n - at < half ? first + n - at : half;
      WeightSegment slice;
      WeightSegment up_slice;
      GEN_TRY(unpacked(weight, at, here, 0, &slice));
      if (up != nullptr) {
        const auto behind = static_cast<size_t>(tiles_of(here) * kTileOutputs) * row_bytes;
        GEN_TRY(unpacked(*up, at, here, behind, &up_slice));
      }
      GEN_TRY(
          product.multiply(slice_end(at, here), slice, up != nullptr ? &up_slice : nullptr, true));
    }
  }
  return {};
}

}  // namespace gen::cuda
