// SPDX-License-Identifier: Apache-2.0
// pack_tiles: rows of a quantised matrix into tiles (weight_tiles.h), once, when a model is loaded.
// A warp makes a step of a tile, a lane what that lane will read: its codes as vectors of 16 bytes,
// which lie side by side with its neighbours'. The rows of a step are 72 to 210 bytes each, whose
// rest in their sectors the next warps read.
#include "cuda/device/memory.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/weight/pack_tiles.h"
#include "cuda/ops/weight/weight_tiles.h"
#include "cuda/ops/weight/weights.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
constexpr int32_t kWarps = kThreads / 32;

/// What a lane reads of a step; zeros where the matrix has nothing.
template <typename Parts>
struct LaneCodes {
  static constexpr quant::Traits kTraits = Parts::kTraits;
  static constexpr int32_t kFirst = first_bits(kTraits);
  static constexpr int32_t kAbove = bits_above(kTraits);
  static constexpr uint32_t kFirstMask = ((1U << kFirst) - 1U) * 0x01010101U;

  /// `first_quad` of the block is the lane's first.
  GEN_DEVICE void take(Bytes block, int32_t first_quad) {
    GEN_UNROLL
    for (int32_t i = 0; i < 8 * lane_sub_blocks(kTraits); ++i) {
      const uint32_t four = Parts::quad(block, first_quad + i);
      const int32_t sub_block = i / 8;
      const int32_t quad = i % 8;
      words[sub_block * kFirst + quad % kFirst] |= (four & kFirstMask) << (quad / kFirst * kFirst);
      if constexpr (kAbove > 0) {
        constexpr uint32_t kAboveMask = ((1U << kAbove) - 1U) * 0x01010101U;
        upper[sub_block * kAbove + quad % kAbove] |= ((four >> kFirst) & kAboveMask)
                                                     << (quad / kAbove * kAbove);
      }
    }
  }

  uint32_t words[static_cast<size_t>(code_words(kTraits))] = {};
  uint32_t upper[kAbove > 0 ? static_cast<size_t>(upper_words(kTraits)) : 1] = {};
};

/// Scales, then minima, of a lane's runs.
template <typename Parts>
GEN_DEVICE void write_runs(Bytes block, int32_t quarter, uint8_t* out) {
  constexpr quant::Traits kTraits = Parts::kTraits;
  constexpr int32_t kRuns = lane_runs(kTraits);
  GEN_UNROLL
  for (int32_t i = 0; i < kRuns; ++i) {
    int32_t scale = 0;
    int32_t minimum = 0;
    if (block != nullptr) {
      scale = Parts::scale(block, quarter * kRuns + i);
      if constexpr (kTraits.minima) minimum = Parts::minimum(block, quarter * kRuns + i);
    }
    if constexpr (shared_runs(kTraits)) scale |= minimum << 4;
    out[i] = static_cast<uint8_t>(scale);
    if constexpr (kTraits.minima && !shared_runs(kTraits)) {
      out[kRuns + i] = static_cast<uint8_t>(minimum);
    }
  }
}

/// Of a block, whose lane or output is `at`.
template <typename Parts>
GEN_DEVICE void write_scales(Bytes block, int32_t at, uint8_t* step) {
  constexpr quant::Traits kTraits = Parts::kTraits;
  if constexpr (kTraits.scale == quant::ScaleKind::kE8M0) {
    step[d_offset(kTraits) + at] = block != nullptr ? block[Parts::kD] : 0;
  } else {
    auto* const d = reinterpret_cast<uint16_t*>(step + d_offset(kTraits));
    d[at] = block != nullptr ? load_u16(block + Parts::kD) : 0;
  }
  if constexpr (kTraits.minima) {
    auto* const dmin = reinterpret_cast<uint16_t*>(step + dmin_offset(kTraits));
    dmin[at] = block != nullptr ? load_u16(block + Parts::kDmin) : 0;
  }
}

// Kernels that follow read weights before they wait, so this one lets none begin early.
template <typename Parts>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    pack_tiles_kernel(FileRows rows, int64_t steps, int64_t all_steps, uint8_t* tiles) {
  device::wait_for_predecessor();
  constexpr quant::Traits kTraits = Parts::kTraits;
  const int64_t index = int64_t{block_x()} * kWarps + warp_of_block();
  if (index >= all_steps) return;
  const int32_t lane = lane_of_warp();
  const int32_t output = lane / kTileQuarters;
  const int32_t quarter = lane % kTileQuarters;
  const int64_t row = index / steps * kTileOutputs + output;
  const int64_t blocks = rows.cols / kTraits.block;
  const int64_t b = kTraits.block == 32 ? index % steps * kTileQuarters + quarter : index % steps;
  const Bytes block =
      row < rows.rows && b < blocks ? rows.data + (row * blocks + b) * Parts::kBytes : nullptr;
  LaneCodes<Parts> codes;
  if (block != nullptr) codes.take(block, kTraits.block == 32 ? 0 : quarter * 16);
  uint8_t* const step = tiles + static_cast<size_t>(index) * step_bytes(kTraits);
  GEN_UNROLL
  for (int32_t v = 0; v < code_words(kTraits) / 4; ++v) {
    const uint32_t* const four = codes.words + 4 * v;
    device::store16(step + (v * kTileLanes + lane) * 16, {four[0], four[1], four[2], four[3]});
  }
  auto* const upper = reinterpret_cast<uint32_t*>(step + upper_offset(kTraits));
  GEN_UNROLL
  for (int32_t i = 0; i < upper_words(kTraits); ++i) {
    upper[lane * upper_words(kTraits) + i] = codes.upper[i];
  }
  if constexpr (kTraits.block == 32) {
    write_scales<Parts>(block, lane, step);
  } else {
    write_runs<Parts>(block, quarter, step + runs_offset(kTraits) + lane * run_bytes(kTraits));
    if (quarter == 0) write_scales<Parts>(block, output, step);
  }
}

}  // namespace

Status pack_tiles(const OpContext& context, DType type, const FileRows& rows, uint8_t* tiles) {
  return for_type(type, [&](auto codec) -> Status {
    using Codec = decltype(codec);
    if constexpr (Codec::kElements == 1) {
      return error(Code::kInternal, "weights of type %s lie in no tiles", dtype_name(type));
    } else {
      using Parts = typename Codec::Of;
      const int64_t steps = tile_steps(Parts::kTraits, rows.cols);
      const int64_t all = tiles_of(rows.rows) * steps;
      const device::Dim3 grid = {static_cast<unsigned>((all + kWarps - 1) / kWarps), 1, 1};
      return run_kernel(context, "pack_tiles", pack_tiles_kernel<Parts>, grid, kThreads, 0, rows,
                        steps, all, tiles);
    }
  });
}

}  // namespace gen::cuda
