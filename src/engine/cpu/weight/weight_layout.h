// SPDX-License-Identifier: Apache-2.0
// The weight layout of the linear kernels: tiles of 16 rows, so that a vector lane is an output row
// and no kernel sums across lanes. A tile holds all columns of its rows; rows beyond the matrix are
// zeros. Every section is aligned to 64 bytes. The layout is the same on all CPU levels and takes
// at most 4 % more than the file, except for types with codebooks, whose codes stand here as levels
// and signs: docs/quantisation.md. Written by weight_pack.cpp, read by linear_*.cpp.
//
// F32: float [cols][16]. F16: uint16_t [cols][16]. BF16: uint16_t [pairs of cols][16][2], as the
// dot product instruction takes them; an odd last column is paired with zeros.
//
// Quantised types (quant/traits.h): scales of all blocks, then scales of the minima if the type has
// minima, each [blocks][16] (blocks of 32 with runs of 16: [blocks][2][16]), then the blocks in
// order, each:
//   of 32 columns:  codes
//   of 256 columns: scales int8_t [runs][16], minima uint8_t [runs / 2][16][2], codes. With minima
//                   and runs of 16 (Q2_K) both are in one byte, scale | minimum << 4, in the layout
//                   of the minima.
// Codes are stored by 32 columns. A "quad" is four consecutive columns of all 16 rows, [16][4]
// bytes, the operand of one 8-bit dot product instruction. Quads 0 to 7 are packed by code size:
//   8 bits:        8 vectors of 64 bytes, vector j is quad j
//   4, 5, 6 bits:  4 vectors, vector j holds quad j in the low halves of its bytes, quad j + 4 in
//                  the high halves; these are the low 4 bits
//   2, 3 bits:     2 vectors, vector i holds quad i + 2 * g in bits 2 * g and 2 * g + 1
//   1 bit:         1 vector, quad g in bit g
//   then the high bits: one (3 and 5 bits) in one vector, that of quad g in bit g; two (6 bits) in
//   two vectors, laid out like codes of 2 bits
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/traits.h"
#include "tensor/dtype.h"

namespace gen::engine::cpu {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kQuadBytes = 64;

constexpr size_t round_up_64(size_t bytes) noexcept { return (bytes + 63) & ~size_t{63}; }

/// Low bits of a code, in its first vectors, which are as many: 1, 2, 4 or 8. High bits: 0, 1 or 2.
constexpr int base_bits(int bits) noexcept {
  return bits == 8 ? 8 : bits >= 4 ? 4 : bits >= 2 ? 2 : 1;
}
constexpr int upper_bits(int bits) noexcept { return bits - base_bits(bits); }

/// Scale and minimum of a run share a byte.
constexpr bool packed_minima(const quant::Traits& t) noexcept { return t.minima && t.run == 16; }

constexpr int runs_of(const quant::Traits& t) noexcept { return t.block / t.run; }

/// Size of 32 columns of codes.
constexpr size_t sub_block_bytes(const quant::Traits& t) noexcept {
  return static_cast<size_t>(t.bits * kQuadBytes);
}

/// Offsets within a block of 256.
constexpr size_t minima_offset(const quant::Traits& t) noexcept {
  return packed_minima(t) ? 0 : static_cast<size_t>(runs_of(t) * kTileRows);
}
constexpr size_t codes_offset(const quant::Traits& t) noexcept {
  if (t.block == 32) return 0;
  return minima_offset(t) + (t.minima ? static_cast<size_t>(runs_of(t) * kTileRows) : 0);
}
constexpr size_t block_bytes(const quant::Traits& t) noexcept {
  return codes_offset(t) + static_cast<size_t>(t.block / 32) * sub_block_bytes(t);
}

/// Scales of a block and row: one, or one a run in blocks of 32.
constexpr int scales_of(const quant::Traits& t) noexcept { return t.block == 32 ? runs_of(t) : 1; }

/// Size of the scales of a block of 16 rows.
constexpr size_t scale_bytes(const quant::Traits& t) noexcept {
  return t.scale == quant::ScaleKind::kE8M0 ? 16 : static_cast<size_t>(32 * scales_of(t));
}
/// Offsets of the sections of a tile; the scales are at 0.
constexpr size_t dmin_offset(const quant::Traits& t, int64_t cols) noexcept {
  return round_up_64(static_cast<size_t>(cols / t.block) * scale_bytes(t));
}
constexpr size_t blocks_offset(const quant::Traits& t, int64_t cols) noexcept {
  return dmin_offset(t, cols) * (t.minima ? 2 : 1);
}

/// Size of one tile; 0 for a type without kernels. `cols` is a multiple of the type's block.
constexpr size_t tile_bytes(DType type, int64_t cols) noexcept {
  const auto n = static_cast<size_t>(cols);
  if (type == DType::kF32) return n * 64;
  if (type == DType::kF16) return round_up_64(n * 32);
  if (type == DType::kBF16) return (n + 1) / 2 * 64;
  const quant::Traits* t = quant::find_traits(type);
  if (t == nullptr) return 0;
  return blocks_offset(*t, cols) + n / static_cast<size_t>(t->block) * block_bytes(*t);
}

/// Writes tile `tile` of a matrix of `rows` by `cols` stored as `type` at `source`. `out` is
/// 64-byte aligned and holds tile_bytes(type, cols).
void pack_tile(DType type, const std::byte* source, int64_t rows, int64_t cols, int64_t tile,
               std::byte* out) noexcept;

}  // namespace gen::engine::cpu
