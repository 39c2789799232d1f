// SPDX-License-Identifier: Apache-2.0
// Quantised weights as the products of a device read them: tiles of eight outputs, in which a warp
// loads 512 bytes at once and no lane unpacks what another needs. Made by pack_tiles.cu, read by
// linear_quant_few.cuh, linear_quant_rows.cuh and cuda/step. Only bits move: no value changes.
//
// A tile holds all columns of its outputs, a step after another. A step is 128 columns of types
// with blocks of 32, 256 of the others. Lane 4 r + q of a warp has output r and quarter q of the
// step's columns: a block of 32, or 64 columns of a block of 256. What a step consists of:
//   codes   [vectors][32 lanes][16 bytes]
//   upper   [32 lanes][4, 8 or 16 bytes]  bits above the first 2 or 4; types of 3, 5 and 6 bits
//   runs    [32 lanes][2 or 4 bytes]      types with blocks of 256: scales of a lane's runs, then
//                                         their minima; Q2_K has both in one byte, minimum on top
//   d       [32 lanes] or, of blocks of 256, [8 outputs]  binary16, or an exponent (MXFP4)
//   dmin    as d, of types with minima
// Codes go by 32 columns, in quads of four consecutive ones, a byte each. Their first 8, 4 or 2
// bits fill 8, 4 or 2 words: word j has quads j, j + words, … from the lowest bits up. One bit
// above them: a word, quad g in bit g of its bytes; two bits: two words, as codes of two bits.
// Outputs beyond the matrix and blocks beyond its columns are zeros. At most 4 % larger than the
// file, and than that by what rounds the last step up; types with codebooks are larger.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/ops/weight/device_type.h"
#include "quant/traits.h"

namespace gen::cuda {

constexpr int32_t kTileOutputs = 8;
constexpr int32_t kTileQuarters = 4;
constexpr int32_t kTileLanes = kTileOutputs * kTileQuarters;

constexpr int32_t first_bits(const quant::Traits& t) noexcept {
  return t.bits == 8 ? 8 : t.bits >= 4 ? 4 : 2;
}
constexpr int32_t bits_above(const quant::Traits& t) noexcept { return t.bits - first_bits(t); }

constexpr int32_t step_cols(const quant::Traits& t) noexcept { return t.block == 32 ? 128 : 256; }
/// Stretches of 32 columns that a lane has.
constexpr int32_t lane_sub_blocks(const quant::Traits& t) noexcept { return t.block == 32 ? 1 : 2; }
constexpr int32_t lane_runs(const quant::Traits& t) noexcept {
  return 32 * lane_sub_blocks(t) / t.run;
}
/// Words of a lane.
constexpr int32_t code_words(const quant::Traits& t) noexcept {
  return first_bits(t) * lane_sub_blocks(t);
}
constexpr int32_t upper_words(const quant::Traits& t) noexcept {
  return bits_above(t) * lane_sub_blocks(t);
}
/// Scale and minimum of a run share a byte.
constexpr bool shared_runs(const quant::Traits& t) noexcept { return t.minima && t.run == 16; }
constexpr int32_t run_bytes(const quant::Traits& t) noexcept {
  if (t.block == 32) return 0;
  return lane_runs(t) * (t.minima && !shared_runs(t) ? 2 : 1);
}

constexpr int32_t upper_offset(const quant::Traits& t) noexcept {
  return code_words(t) * 4 * kTileLanes;
}
constexpr int32_t runs_offset(const quant::Traits& t) noexcept {
  return upper_offset(t) + upper_words(t) * 4 * kTileLanes;
}
constexpr int32_t d_offset(const quant::Traits& t) noexcept {
  return runs_offset(t) + run_bytes(t) * kTileLanes;
}
constexpr int32_t d_bytes(const quant::Traits& t) noexcept {
  if (t.scale == quant::ScaleKind::kE8M0) return kTileLanes;
  return 2 * (t.block == 32 ? kTileLanes : kTileOutputs);
}
constexpr int32_t dmin_offset(const quant::Traits& t) noexcept { return d_offset(t) + d_bytes(t); }
constexpr int32_t step_bytes(const quant::Traits& t) noexcept {
  return dmin_offset(t) + (t.minima ? d_bytes(t) : 0);
}

constexpr int64_t tile_steps(const quant::Traits& t, int64_t cols) noexcept {
  return (cols + step_cols(t) - 1) / step_cols(t);
}
constexpr size_t tile_bytes(const quant::Traits& t, int64_t cols) noexcept {
  return static_cast<size_t>(tile_steps(t, cols)) * static_cast<size_t>(step_bytes(t));
}
constexpr int64_t tiles_of(int64_t rows) noexcept {
  return (rows + kTileOutputs - 1) / kTileOutputs;
}

// Vectors begin at multiples of their size wherever a step begins.
constexpr bool tiles_are_aligned() noexcept {
  for (const quant::Traits& t : quant::kTraits) {
    if (!has_tiles(t)) continue;
    if (step_bytes(t) % 16 != 0 || code_words(t) % 4 != 0) return false;
  }
  return true;
}
static_assert(tiles_are_aligned());

}  // namespace gen::cuda
