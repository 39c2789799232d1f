// SPDX-License-Identifier: Apache-2.0
// From the rows of a file to tiles. Only bytes move: no value changes, so a product of packed
// weights is that of the file's. See weight_layout.h.
#include <algorithm>
#include <cstring>

#include "engine/cpu/weight_layout.h"
#include "engine/cpu/weight_transpose.h"
#include "quant/format.h"

namespace gen::engine::cpu {
namespace {

// The same bits in each byte of a word.
constexpr uint32_t in_each_byte(int bits) noexcept { return 0x01010101u * ((1u << bits) - 1); }

// 32 codes of one row, as eight words of four, into the words of that row, as many as bits.
template <int kBits>
void pack_codes(const uint8_t* codes, uint32_t* out) noexcept {
  constexpr int kBase = base_bits(kBits);
  constexpr int kUpper = upper_bits(kBits);
  constexpr int kVectors = kBase == 8 ? 8 : kBase == 4 ? 4 : 2;  // quads j, j + kVectors, … share
  uint32_t quads[8];
  std::memcpy(quads, codes, sizeof(quads));
  for (int j = 0; j < kVectors; ++j) {
    uint32_t word = 0;
    for (int g = 0; j + g * kVectors < 8; ++g) {
      word |= (quads[j + g * kVectors] & in_each_byte(kBase)) << (g * kBase);
    }
    out[j] = word;
  }
  for (int i = 0; i < kUpper; ++i) {  // as many vectors as bits
    uint32_t word = 0;
    for (int g = 0; i + g * kUpper < 8; ++g) {
      word |= ((quads[i + g * kUpper] >> kBase) & in_each_byte(kUpper)) << (g * kUpper);
    }
    out[kVectors + i] = word;
  }
}

void pack_part(int bits, const uint8_t* codes, uint32_t* out) noexcept {
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

// The files' blocks of 32 hold codes of 4 and 8 bits as tiles do, in their last bytes and after
// scale and minimum; only codes of 8 bits have a sign.
constexpr bool lies_as_in_tiles(const quant::Traits& t) noexcept {
  return t.block == 32 && (t.bits == 4 || t.bits == 8);
}

// The rows of a tile, from the columns at hand on.
struct Rows {
  const std::byte* at;
  size_t stride;
  int n;
};

// Where the 16 rows' parts of one block go.
struct Places {
  std::byte* d;
  std::byte* dmin;
  std::byte* block;
};

void gather_halves(const Rows& rows, size_t offset, std::byte* out) noexcept {
  const std::byte* from = rows.at + offset;
  for (int r = 0; r < rows.n; ++r, from += rows.stride) std::memcpy(out + r * 2, from, 2);
}

void copy_block(const quant::Traits& t, size_t file_block, const Rows& rows,
                const Places& to) noexcept {
  if (t.scale == quant::ScaleKind::kE8M0) {
    for (int r = 0; r < rows.n; ++r) to.d[r] = rows.at[static_cast<size_t>(r) * rows.stride];
  } else {
    gather_halves(rows, 0, to.d);
  }
  if (t.minima) gather_halves(rows, sizeof(uint16_t), to.dmin);
  const size_t codes = file_block - static_cast<size_t>(t.bits) * sizeof(uint32_t);
  transpose_words(rows.at + codes, rows.stride, rows.n, t.bits, t.bits == 8 ? 0x80808080u : 0,
                  to.block);
}

void unpack_block(const quant::Traits& t, const quant::Format& format, const Rows& rows,
                  const Places& to) noexcept {
  constexpr size_t kMostWords = 256 / 32 * 6;
  uint32_t words[kTileRows][kMostWords];
  quant::BlockParts parts;
  const int n_parts = t.block / 32;
  const std::byte* from = rows.at;
  for (int r = 0; r < rows.n; ++r, from += rows.stride) {
    format.unpack(from, parts);
    std::memcpy(to.d + r * 2, &parts.d, sizeof(parts.d));
    if (t.minima) std::memcpy(to.dmin + r * 2, &parts.dmin, sizeof(parts.dmin));
    if (t.block == 256) pack_runs(t, parts, r, reinterpret_cast<uint8_t*>(to.block));
    for (int part = 0; part < n_parts; ++part) {
      pack_part(t.bits, parts.codes + part * 32, words[r] + part * t.bits);
    }
  }
  transpose_words(reinterpret_cast<const std::byte*>(words), sizeof(words[0]), rows.n,
                  n_parts * t.bits, 0, to.block + codes_offset(t));
}

// Asks for the next tile's rows, which lie behind those of this one, while these are packed:
// sixteen rows read side by side are more places than processors follow by themselves.
class NextTile {
 public:
  NextTile(const std::byte* begin, size_t bytes) noexcept : at_(begin), left_(bytes) {}

  void ask_for(size_t bytes) noexcept {
    bytes = std::min(bytes, left_);
    for (size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(at_ + i);
    at_ += bytes;
    left_ -= bytes;
  }

 private:
  static constexpr size_t kLine = 64;
  const std::byte* at_;
  size_t left_;
};

// Columns are taken in steps, so that lines of `out` are written while they are near.
void pack_floats(Rows rows, int64_t cols, size_t size, NextTile next, std::byte* out) noexcept {
  constexpr int64_t kStep = 32;
  for (int64_t c = 0; c < cols; c += kStep) {
    const int64_t n = std::min(kStep, cols - c);
    const size_t bytes = static_cast<size_t>(n) * size;
    next.ask_for(bytes * kTileRows);
    if (size == sizeof(float)) {
      transpose_words(rows.at, rows.stride, rows.n, static_cast<int>(n), 0, out);
    } else {
      transpose_halves(rows.at, rows.stride, rows.n, n, out);
    }
    rows.at += bytes;
    out += bytes * kTileRows;
  }
}

void pack_blocks(const quant::Traits& t, const quant::Format& format, Rows rows, int64_t cols,
                 NextTile next, std::byte* out) noexcept {
  const size_t file_block = dtype_info(t.type)->block_bytes;
  Places to = {out, out + dmin_offset(t, cols), out + blocks_offset(t, cols)};
  for (int64_t b = 0; b < cols / t.block; ++b) {
    next.ask_for(file_block * kTileRows);
    if (lies_as_in_tiles(t)) {
      copy_block(t, file_block, rows, to);
    } else {
      unpack_block(t, format, rows, to);
    }
    rows.at += file_block;
    to.d += scale_bytes(t);
    to.dmin += scale_bytes(t);
    to.block += block_bytes(t);
  }
}

// Padding, between sections and for rows beyond the matrix, is zeros.
void clear_padding(DType type, int64_t cols, int valid, std::byte* out) noexcept {
  const size_t bytes = tile_bytes(type, cols);
  const quant::Traits* t = quant::find_traits(type);
  if (valid < kTileRows) {
    std::memset(out, 0, bytes);
  } else if (t == nullptr) {
    if (bytes >= 64) std::memset(out + bytes - 64, 0, 64);
  } else {
    // Each section of scales ends less than 64 bytes before the next.
    for (size_t end : {dmin_offset(*t, cols), blocks_offset(*t, cols)}) {
      std::memset(out + end - 64, 0, 64);
    }
  }
}

}  // namespace

void pack_tile(DType type, const std::byte* source, int64_t rows, int64_t cols, int64_t tile,
               std::byte* out) noexcept {
  uint64_t row_bytes = 0;
  if (!dtype_row_bytes(type, static_cast<uint64_t>(cols), &row_bytes)) return;
  const Rows here = {source + static_cast<size_t>(tile * kTileRows) * row_bytes, row_bytes,
                     static_cast<int>(std::min(kTileRows, rows - tile * kTileRows))};
  const std::byte* end = here.at + static_cast<size_t>(here.n) * row_bytes;
  const NextTile next(
      end, static_cast<size_t>(std::min(kTileRows, rows - tile * kTileRows - here.n)) * row_bytes);
  clear_padding(type, cols, here.n, out);
  if (type == DType::kF32) return pack_floats(here, cols, sizeof(float), next, out);
  if (type == DType::kF16 || type == DType::kBF16) {
    return pack_floats(here, cols, sizeof(uint16_t), next, out);
  }
  const quant::Traits* traits = quant::find_traits(type);
  const quant::Format* format = quant::find_format(type);
  if (traits == nullptr || format == nullptr) return;
  pack_blocks(*traits, *format, here, cols, next, out);
}

}  // namespace gen::engine::cpu
