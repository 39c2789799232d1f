// SPDX-License-Identifier: Apache-2.0
// From the rows of a file to tiles. Only bytes move: no value changes, so a product of packed
// weights is that of the file's. See weight_layout.h.
#include <algorithm>
#include <cstring>

#include "engine/cpu/weight_layout.h"
#include "quant/q4_0.h"
#include "quant/q4_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace gen::engine::cpu {
namespace {

template <typename T>
void pack_plain(const std::byte* rows, size_t row_bytes, int64_t valid, int64_t cols,
                std::byte* out) noexcept {
  T* to = reinterpret_cast<T*>(out);
  for (int64_t r = 0; r < valid; ++r) {
    const std::byte* from = rows + static_cast<size_t>(r) * row_bytes;
    for (int64_t c = 0; c < cols; ++c) {
      std::memcpy(&to[c * kTileRows + r], from + static_cast<size_t>(c) * sizeof(T), sizeof(T));
    }
  }
}

template <typename Block>
Block load_block(const std::byte* row, int64_t index) noexcept {
  Block block;
  std::memcpy(&block, row + static_cast<size_t>(index) * sizeof(Block), sizeof(Block));
  return block;
}

// Byte of row `r` and column 4 * quad + i within quads.
uint8_t& in_quad(std::byte* quads, int quad, int64_t r, int i) noexcept {
  return reinterpret_cast<uint8_t*>(quads)[quad * kQuadBytes + r * 4 + i];
}

// Puts 32 values of 4 bits into the four vectors at `out`.
template <typename Value>
void pack_nibbles(uint8_t* out, int64_t r, Value value) noexcept {
  for (int c = 0; c < 16; ++c) {
    const int low = value(c);
    const int high = value(c + 16);
    out[c / 4 * kQuadBytes + r * 4 + c % 4] = static_cast<uint8_t>(low | (high << 4));
  }
}

void pack_q8_0(const std::byte* row, int64_t r, int64_t cols, std::byte* out) noexcept {
  auto* scales = reinterpret_cast<uint16_t*>(out);
  std::byte* weights = out + block32_weights_offset(cols);
  for (int64_t b = 0; b < cols / 32; ++b, weights += kQ8_0TileBlock) {
    const auto block = load_block<quant::Q8_0Block>(row, b);
    scales[b * kTileRows + r] = block.d;
    for (int c = 0; c < 32; ++c) {
      in_quad(weights, c / 4, r, c % 4) = static_cast<uint8_t>(block.q[c] + 128);
    }
  }
}

void pack_q4_0(const std::byte* row, int64_t r, int64_t cols, std::byte* out) noexcept {
  auto* scales = reinterpret_cast<uint16_t*>(out);
  auto* weights = reinterpret_cast<uint8_t*>(out + block32_weights_offset(cols));
  for (int64_t b = 0; b < cols / 32; ++b, weights += kQ4_0TileBlock) {
    const auto block = load_block<quant::Q4_0Block>(row, b);
    scales[b * kTileRows + r] = block.d;
    pack_nibbles(weights, r,
                 [&](int c) { return c < 16 ? block.qs[c] & 15 : block.qs[c - 16] >> 4; });
  }
}

void pack_q4_k(const std::byte* row, int64_t r, int64_t cols, std::byte* out) noexcept {
  auto* to = reinterpret_cast<Q4_KTileBlock*>(out);
  for (int64_t b = 0; b < cols / 256; ++b, ++to) {
    const auto block = load_block<quant::Q4_KBlock>(row, b);
    to->d[r] = block.d;
    to->dmin[r] = block.dmin;
    for (int s = 0; s < 8; ++s) {
      const quant::ScaleMin run = quant::q4_k_scale_min(block.scales, s);
      to->scales[s][r] = run.scale;
      to->minima[s / 2][r][s % 2] = run.minimum;
      const uint8_t* bytes = block.qs + s / 2 * 32;
      pack_nibbles(to->weights[s][0], r,
                   [&](int c) { return s % 2 == 0 ? bytes[c] & 15 : bytes[c] >> 4; });
    }
  }
}

void pack_q6_k(const std::byte* row, int64_t r, int64_t cols, std::byte* out) noexcept {
  auto* d = reinterpret_cast<uint16_t*>(out);
  auto* to = reinterpret_cast<Q6_KTileBlock*>(out + q6_k_blocks_offset(cols));
  for (int64_t b = 0; b < cols / 256; ++b, ++to) {
    const auto block = load_block<quant::Q6_KBlock>(row, b);
    d[b * kTileRows + r] = block.d;
    for (int s = 0; s < 16; ++s) to->scales[s][r] = block.scales[s];
    for (int part = 0; part < 8; ++part) {
      const auto level = [&](int c) { return quant::q6_k_level(block, part * 32 + c); };
      pack_nibbles(to->low[part][0], r, [&](int c) { return level(c) & 15; });
      for (int i = 0; i < 2; ++i) {
        for (int c = 0; c < 4; ++c) {
          int bits = 0;
          for (int g = 0; g < 4; ++g) bits |= (level((i + 2 * g) * 4 + c) >> 4) << (2 * g);
          to->high[part][i][r * 4 + c] = static_cast<uint8_t>(bits);
        }
      }
    }
  }
}

}  // namespace

void pack_tile(DType type, const std::byte* source, int64_t rows, int64_t cols, int64_t tile,
               std::byte* out) noexcept {
  uint64_t row_bytes = 0;
  if (!dtype_row_bytes(type, static_cast<uint64_t>(cols), &row_bytes)) return;
  const std::byte* first = source + static_cast<size_t>(tile * kTileRows) * row_bytes;
  const int64_t valid = std::min(kTileRows, rows - tile * kTileRows);
  // Padding, between sections and for rows beyond the matrix, is zeros.
  std::memset(out, 0, tile_bytes(type, cols));
  switch (type) {
    case DType::kF32:
      return pack_plain<uint32_t>(first, row_bytes, valid, cols, out);
    case DType::kF16:
    case DType::kBF16:
      return pack_plain<uint16_t>(first, row_bytes, valid, cols, out);
    default:
      break;
  }
  for (int64_t r = 0; r < valid; ++r) {
    const std::byte* row = first + static_cast<size_t>(r) * row_bytes;
    switch (type) {
      case DType::kQ8_0:
        pack_q8_0(row, r, cols, out);
        break;
      case DType::kQ4_0:
        pack_q4_0(row, r, cols, out);
        break;
      case DType::kQ4_K:
        pack_q4_k(row, r, cols, out);
        break;
      case DType::kQ6_K:
        pack_q6_k(row, r, cols, out);
        break;
      default:
        break;
    }
  }
}

}  // namespace gen::engine::cpu
