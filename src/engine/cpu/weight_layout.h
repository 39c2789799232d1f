// SPDX-License-Identifier: Apache-2.0
// Weights as the linear kernels read them: tiles of 16 rows, so that one vector lane is one output
// row and no kernel ever sums across lanes. A tile holds all columns of its rows; rows beyond the
// matrix are zeros. A "quad" is four consecutive columns of all 16 rows, [16][4] bytes, what one
// 8-bit dot product instruction takes. Every section starts on a multiple of 64 bytes. Made by
// weight_pack.cpp, read by linear_*.cpp; the same on all CPU levels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops.h"
#include "tensor/dtype.h"

namespace gen::engine::cpu {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kQuadBytes = 64;

constexpr size_t round_up_64(size_t bytes) noexcept { return (bytes + 63) & ~size_t{63}; }

// F32: float [cols][16]. F16, BF16: uint16_t [cols][16].

/// Q8_0, Q4_0: the scales of all blocks, binary16 [blocks][16], then the weights of all blocks.
/// Q8_0 block: 8 quads of weight + 128, 512 bytes.
/// Q4_0 block: 4 vectors of 64 bytes; vector j holds quad j in the low halves of its bytes and quad
/// j + 4 in the high halves, weights + 8; 256 bytes.
constexpr size_t block32_weights_offset(int64_t cols) noexcept {
  return round_up_64(static_cast<size_t>(cols / 32) * 32);
}
inline constexpr size_t kQ8_0TileBlock = 512;
inline constexpr size_t kQ4_0TileBlock = 256;

/// 256 columns of Q4_K: w = d * scale * q - dmin * minimum. 2368 bytes.
struct Q4_KTileBlock {
  uint16_t d[16];
  uint16_t dmin[16];
  uint8_t scales[8][16];      // [run of 32][row]
  uint8_t minima[4][16][2];   // [pair of runs][row][run of the pair]
  uint8_t weights[8][4][64];  // per run as a Q4_0 block, q as it is
};
static_assert(sizeof(Q4_KTileBlock) == 37 * 64);

/// 256 columns of Q6_K: w = d * scale * (q - 32), q in [0, 63]. The binary16 d of all blocks,
/// [blocks][16], lie before them. 3328 bytes.
struct Q6_KTileBlock {
  int8_t scales[16][16];   // [run of 16][row]
  uint8_t low[8][4][64];   // per 32 columns as a Q4_0 block: the low 4 bits of q
  uint8_t high[8][2][64];  // per 32 columns: vector i holds bits 4 and 5 of quad i + 2 * g in bits
                           // 2 * g and 2 * g + 1
};
static_assert(sizeof(Q6_KTileBlock) == 52 * 64);
constexpr size_t q6_k_blocks_offset(int64_t cols) noexcept {
  return round_up_64(static_cast<size_t>(cols / 256) * 32);
}

/// Bytes of one tile; 0 for a type without kernels. `cols` is whole blocks of the type.
constexpr size_t tile_bytes(DType type, int64_t cols) noexcept {
  const auto n = static_cast<size_t>(cols);
  switch (type) {
    case DType::kF32:
      return n * 64;
    case DType::kF16:
    case DType::kBF16:
      return round_up_64(n * 32);
    case DType::kQ8_0:
      return block32_weights_offset(cols) + n / 32 * kQ8_0TileBlock;
    case DType::kQ4_0:
      return block32_weights_offset(cols) + n / 32 * kQ4_0TileBlock;
    case DType::kQ4_K:
      return n / 256 * sizeof(Q4_KTileBlock);
    case DType::kQ6_K:
      return q6_k_blocks_offset(cols) + n / 256 * sizeof(Q6_KTileBlock);
    default:
      return 0;
  }
}

/// The form of activations that the kernels of `type` read, or 0.
constexpr uint32_t activation_form(DType type) noexcept {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return kActF32;
    case DType::kQ8_0:
    case DType::kQ4_0:
      return kActQ8;
    case DType::kQ4_K:
    case DType::kQ6_K:
      return kActQ8K;
    default:
      return 0;
  }
}

/// Writes tile `tile` of a matrix of `rows` by `cols` stored as `type` at `source`. `out` is
/// 64-byte aligned and holds tile_bytes(type, cols).
void pack_tile(DType type, const std::byte* source, int64_t rows, int64_t cols, int64_t tile,
               std::byte* out) noexcept;

}  // namespace gen::engine::cpu
