// SPDX-License-Identifier: Apache-2.0
// From the rows of a file to tiles. Only bytes move: no value changes, so a product of packed
// weights is that of the file's. See weight_layout.h.
#include <algorithm>
#include <cstring>

#include "engine/cpu/weight_layout.h"
#include "quant/format.h"

namespace gen::engine::cpu {
namespace {

// kTogether columns of a row lie together. Eight columns at a time, so that lines of `out` are
// written while they are near.
template <typename T, int64_t kTogether>
void pack_plain(const std::byte* rows, size_t row_bytes, int64_t valid, int64_t cols,
                std::byte* out) noexcept {
  constexpr int64_t kStep = 8;
  T* to = reinterpret_cast<T*>(out);
  for (int64_t first = 0; first < cols; first += kStep) {
    const int64_t end = std::min(first + kStep, cols);
    for (int64_t r = 0; r < valid; ++r) {
      const std::byte* from = rows + static_cast<size_t>(r) * row_bytes;
      for (int64_t c = first; c < end; ++c) {
        const int64_t group = c / kTogether * kTogether;
        std::memcpy(&to[group * kTileRows + r * kTogether + c % kTogether],
                    from + static_cast<size_t>(c) * sizeof(T), sizeof(T));
      }
    }
  }
}

// The same bits in each byte of a word.
constexpr uint32_t in_each_byte(int bits) noexcept { return 0x01010101u * ((1u << bits) - 1); }

// 32 codes of one row, as eight words of four, into that row's words of the vectors at `out`.
template <int kBits>
void pack_codes(const uint8_t* codes, uint8_t* out) noexcept {
  constexpr int kBase = base_bits(kBits);
  constexpr int kUpper = upper_bits(kBits);
  constexpr int kVectors = kBase == 8 ? 8 : kBase == 4 ? 4 : 2;  // quads j, j + kVectors, … share
  uint32_t quads[8];
  std::memcpy(quads, codes, sizeof(quads));
  const auto store = [&](int vector, uint32_t word) {
    std::memcpy(out + vector * kQuadBytes, &word, sizeof(word));
  };
  for (int j = 0; j < kVectors; ++j) {
    uint32_t word = 0;
    for (int g = 0; j + g * kVectors < 8; ++g) {
      word |= (quads[j + g * kVectors] & in_each_byte(kBase)) << (g * kBase);
    }
    store(j, word);
  }
  for (int i = 0; i < kUpper; ++i) {  // as many vectors as bits
    uint32_t word = 0;
    for (int g = 0; i + g * kUpper < 8; ++g) {
      word |= ((quads[i + g * kUpper] >> kBase) & in_each_byte(kUpper)) << (g * kUpper);
    }
    store(kVectors + i, word);
  }
}

void pack_part(int bits, const uint8_t* codes, uint8_t* out) noexcept {
  switch (bits) {
    case 2:
      return pack_codes<2>(codes, out);
    case 3:
      return pack_codes<3>(codes, out);
    case 4:
      return pack_codes<4>(codes, out);
    case 5:
      return pack_codes<5>(codes, out);
    case 6:
      return pack_codes<6>(codes, out);
    default:
      return pack_codes<8>(codes, out);
  }
}

// Scales and minima of one block of 256.
void pack_runs(const quant::Traits& t, const quant::BlockParts& parts, int64_t r,
               uint8_t* out) noexcept {
  uint8_t* minima = out + minima_offset(t);
  for (int run = 0; run < runs_of(t); ++run) {
    const auto scale = static_cast<uint8_t>(parts.scales[run]);
    uint8_t& paired = minima[run / 2 * 2 * kTileRows + r * 2 + run % 2];
    if (packed_minima(t)) {
      paired = static_cast<uint8_t>(scale | (parts.minima[run] << 4));
      continue;
    }
    out[run * kTileRows + r] = scale;
    if (t.minima) paired = parts.minima[run];
  }
}

void pack_row(const quant::Traits& t, const quant::Format& format, const std::byte* row, int64_t r,
              int64_t cols, std::byte* out) noexcept {
  const size_t file_block = dtype_info(t.type)->block_bytes;
  auto* d = reinterpret_cast<uint16_t*>(out);
  auto* exponents = reinterpret_cast<uint8_t*>(out);
  auto* dmin = reinterpret_cast<uint16_t*>(out + dmin_offset(t, cols));
  auto* to = reinterpret_cast<uint8_t*>(out + blocks_offset(t, cols));
  quant::BlockParts parts;
  for (int64_t b = 0; b < cols / t.block; ++b, row += file_block, to += block_bytes(t)) {
    format.unpack(row, parts);
    const int64_t at = b * kTileRows + r;
    if (t.scale == quant::ScaleKind::kE8M0) {
      exponents[at] = static_cast<uint8_t>(parts.d);
    } else {
      d[at] = parts.d;
    }
    if (t.minima) dmin[at] = parts.dmin;
    if (t.block == 256) pack_runs(t, parts, r, to);
    for (int part = 0; part < t.block / 32; ++part) {
      uint8_t* codes = to + codes_offset(t) + static_cast<size_t>(part) * part_bytes(t);
      pack_part(t.bits, parts.codes + part * 32, codes + r * 4);
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
  if (type == DType::kF32) return pack_plain<uint32_t, 1>(first, row_bytes, valid, cols, out);
  if (type == DType::kF16) return pack_plain<uint16_t, 1>(first, row_bytes, valid, cols, out);
  if (type == DType::kBF16) return pack_plain<uint16_t, 2>(first, row_bytes, valid, cols, out);
  const quant::Traits* traits = quant::find_traits(type);
  const quant::Format* format = quant::find_format(type);
  if (traits == nullptr || format == nullptr) return;
  for (int64_t r = 0; r < valid; ++r) {
    pack_row(*traits, *format, first + static_cast<size_t>(r) * row_bytes, r, cols, out);
  }
}

}  // namespace gen::engine::cpu
