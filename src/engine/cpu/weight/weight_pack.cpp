// SPDX-License-Identifier: Apache-2.0
// Packs the rows of a file into tiles. Packing reorders bits and changes no value, so products with
// packed weights equal those with the file's. See weight_layout.h.
#include <algorithm>
#include <cstring>

#include "engine/cpu/weight/weight_layout.h"
#include "engine/cpu/weight/weight_transpose.h"
#include "quant/format.h"

namespace gen::engine::cpu {
namespace {

constexpr auto kRows = static_cast<size_t>(kTileRows);

// Quads that one shift and one mask process together, as many as the bits extracted.
template <int kBits>
struct LumpOf;
template <>
struct LumpOf<1> {
  using Type = uint32_t;
};
template <>
struct LumpOf<2> {
  using Type = uint64_t;
};
template <>
struct LumpOf<4> {
  using Type = uint32_t __attribute__((vector_size(16)));
};

// Extracts kBits of each of 32 codes, from bit `shift` on: quads j, j + kBits, … share word j of
// `out`, the first of them in the lowest bits.
template <int kBits>
void pack_bits(const uint8_t* codes, int shift, uint8_t* out) noexcept {
  using Lump = typename LumpOf<kBits>::Type;
  Lump mask;
  std::memset(&mask, (1 << kBits) - 1, sizeof(mask));
  Lump sum = {};
  for (int g = 0; g < 8 / kBits; ++g, codes += sizeof(Lump)) {
    Lump lump;
    std::memcpy(&lump, codes, sizeof(lump));
    sum |= ((lump >> shift) & mask) << (g * kBits);
  }
  std::memcpy(out, &sum, sizeof(sum));
}

// Packs 32 codes of one row, of 1 to 6 bits, into as many words; codes of 8 bits are copied.
template <int kBits>
void pack_sub_block(const uint8_t* codes, uint8_t* out) noexcept {
  constexpr int kBase = base_bits(kBits);
  constexpr int kUpper = upper_bits(kBits);
  pack_bits<kBase>(codes, 0, out);
  if constexpr (kUpper > 0) pack_bits<kUpper>(codes, kBase, out + static_cast<size_t>(kBase) * 4);
}

template <int kBits>
void pack_sub_blocks(const uint8_t* codes, int n, uint8_t* out) noexcept {
  for (int i = 0; i < n; ++i, codes += 32, out += static_cast<size_t>(kBits) * 4)
    pack_sub_block<kBits>(codes, out);
}

void pack_codes(int bits, const uint8_t* codes, int n_sub_blocks, uint8_t* out) noexcept {
  switch (bits) {
    case 1:
      return pack_sub_blocks<1>(codes, n_sub_blocks, out);
    case 2:
      return pack_sub_blocks<2>(codes, n_sub_blocks, out);
    case 3:
      return pack_sub_blocks<3>(codes, n_sub_blocks, out);
    case 4:
      return pack_sub_blocks<4>(codes, n_sub_blocks, out);
    case 5:
      return pack_sub_blocks<5>(codes, n_sub_blocks, out);
    default:
      return pack_sub_blocks<6>(codes, n_sub_blocks, out);
  }
}

// Scales and minima of the 16 rows of a block of 256, row by row.
struct Runs {
  uint8_t scales[kRows][16];
  uint8_t minima[kRows][16];  // the scale in the low half where both share a byte

  void set(const quant::Traits& t, const quant::BlockParts& parts, size_t r) noexcept {
    std::memcpy(scales[r], parts.scales, sizeof(scales[r]));
    std::memcpy(minima[r], parts.minima, sizeof(minima[r]));
    if (!packed_minima(t)) return;
    for (int run = 0; run < 16; ++run) {
      minima[r][run] = static_cast<uint8_t>(scales[r][run] | (minima[r][run] << 4));
    }
  }

  void pack(const quant::Traits& t, std::byte* out) const noexcept {
    const int pairs = runs_of(t) / 2;
    std::byte paired[8 * kPairBytes];
    if (t.minima) {
      transpose_halves(reinterpret_cast<const std::byte*>(minima), 16, kRows, 8, paired);
      std::memcpy(out + minima_offset(t), paired, static_cast<size_t>(pairs) * kPairBytes);
    }
    if (packed_minima(t)) return;
    transpose_halves(reinterpret_cast<const std::byte*>(scales), 16, kRows, 8, paired);
    for (int pair = 0; pair < pairs; ++pair, out += kPairBytes) {
      const std::byte* from = paired + static_cast<size_t>(pair) * kPairBytes;
      for (size_t r = 0; r < kRows; ++r) {
        out[r] = from[2 * r];
        out[r + kRows] = from[2 * r + 1];
      }
    }
  }

 private:
  static constexpr size_t kPairBytes = 2 * kRows;
};

// In the file's blocks of 32, codes of 4 and 8 bits have the same packing as in tiles. They follow
// the scale and the minimum. Only codes of 8 bits are signed.
constexpr bool lies_as_in_tiles(const quant::Traits& t) noexcept {
  return t.block == 32 && t.stored == 0 && (t.bits == 4 || t.bits == 8);
}

// The rows of a tile, from the current columns on.
struct SourceRows {
  const std::byte* at;
  size_t stride;
  size_t n;
};

// The targets of one block of the 16 rows.
struct BlockTargets {
  std::byte* d;
  std::byte* dmin;
  std::byte* block;
};

void gather_halves(const SourceRows& rows, size_t offset, std::byte* out) noexcept {
  const std::byte* from = rows.at + offset;
  for (size_t r = 0; r < rows.n; ++r, from += rows.stride) std::memcpy(out + r * 2, from, 2);
}

void copy_block(const quant::Traits& t, size_t file_block, const SourceRows& rows,
                const BlockTargets& to) noexcept {
  if (t.scale == quant::ScaleKind::kE8M0) {
    for (size_t r = 0; r < rows.n; ++r) to.d[r] = rows.at[r * rows.stride];
  } else {
    gather_halves(rows, 0, to.d);
  }
  if (t.minima) gather_halves(rows, sizeof(uint16_t), to.dmin);
  const auto words = static_cast<size_t>(t.bits);
  const size_t codes = file_block - words * sizeof(uint32_t);
  transpose_words(rows.at + codes, rows.stride, rows.n, words, t.bits == 8 ? 0x80808080u : 0,
                  to.block);
}

void unpack_block(const quant::Traits& t, const quant::Format& format, const SourceRows& rows,
                  const BlockTargets& to) noexcept {
  constexpr size_t kMaxWords = size_t{256} / 32 * 6;
  uint8_t words[kRows][kMaxWords * sizeof(uint32_t)];
  Runs runs = {};
  quant::BlockParts parts = {};
  const int n_sub_blocks = t.block / 32;
  const auto n_words = static_cast<size_t>(n_sub_blocks) * static_cast<size_t>(t.bits);
  const std::byte* from = rows.at;
  for (size_t r = 0; r < rows.n; ++r, from += rows.stride) {
    format.unpack(from, parts);
    std::memcpy(to.d + r * 2, &parts.d, sizeof(parts.d));
    if (t.minima) std::memcpy(to.dmin + r * 2, &parts.dmin, sizeof(parts.dmin));
    if (t.block == 256) runs.set(t, parts, r);
    pack_codes(t.bits, parts.codes, n_sub_blocks, words[r]);
  }
  transpose_words(reinterpret_cast<const std::byte*>(words), sizeof(words[0]), rows.n, n_words, 0,
                  to.block + codes_offset(t));
  if (t.block == 256) runs.pack(t, to.block);
}

// A block of the file that is several blocks of 32.
void unpack_blocks(const quant::Traits& t, const quant::Format& format, const SourceRows& rows,
                   const BlockTargets& to) noexcept {
  constexpr size_t kMaxWords = size_t{128} / 32 * 4;
  uint8_t words[kRows][kMaxWords * sizeof(uint32_t)];
  quant::BlockParts parts = {};
  const int n_blocks = t.stored / 32;
  const int n_runs = t.stored / t.run;
  const auto block_words = static_cast<size_t>(t.bits);
  const std::byte* from = rows.at;
  for (size_t r = 0; r < rows.n; ++r, from += rows.stride) {
    format.unpack(from, parts);
    for (int run = 0; run < n_runs; ++run) {
      std::memcpy(to.d + (static_cast<size_t>(run) * kRows + r) * 2, &parts.run_d[run], 2);
    }
    pack_codes(t.bits, parts.codes, n_blocks, words[r]);
  }
  for (size_t b = 0; b < static_cast<size_t>(n_blocks); ++b) {
    transpose_words(reinterpret_cast<const std::byte*>(words) + b * block_words * sizeof(uint32_t),
                    sizeof(words[0]), rows.n, block_words, 0, to.block + b * block_bytes(t));
  }
}

// Prefetches the rows of the next tile, which follow those of this one: sixteen rows read side by
// side are more streams than hardware prefetchers track.
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

// Columns are processed in steps, so that lines of `out` are written while they are cached.
void pack_floats(SourceRows rows, size_t cols, size_t size, NextTile next,
                 std::byte* out) noexcept {
  constexpr size_t kStep = 32;
  for (size_t c = 0; c < cols; c += kStep) {
    const size_t n = std::min(kStep, cols - c);
    const size_t bytes = n * size;
    next.ask_for(bytes * kRows);
    if (size == sizeof(float)) {
      transpose_words(rows.at, rows.stride, rows.n, n, 0, out);
    } else {
      transpose_halves(rows.at, rows.stride, rows.n, n, out);
    }
    rows.at += bytes;
    out += bytes * kRows;
  }
}

// Two columns of a row form a word; a last, single column is half a word.
void pack_pairs(const SourceRows& rows, size_t cols, NextTile next, std::byte* out) noexcept {
  const size_t pairs = cols / 2;
  pack_floats(rows, pairs, sizeof(uint32_t), next, out);
  if (cols % 2 == 0) return;
  for (size_t r = 0; r < rows.n; ++r) {
    std::memcpy(out + (pairs * kRows + r) * sizeof(uint32_t),
                rows.at + r * rows.stride + pairs * sizeof(uint32_t), sizeof(uint16_t));
  }
}

void pack_blocks(const quant::Traits& t, const quant::Format& format, SourceRows rows, int64_t cols,
                 NextTile next, std::byte* out) noexcept {
  const size_t file_block = dtype_info(t.type)->block_bytes;
  BlockTargets to = {out, out + dmin_offset(t, cols), out + blocks_offset(t, cols)};
  const int stored = quant::stored_block(t);
  const auto n_blocks = static_cast<size_t>(stored / t.block);
  for (int64_t b = 0; b < cols / stored; ++b) {
    next.ask_for(file_block * kRows);
    if (lies_as_in_tiles(t)) {
      copy_block(t, file_block, rows, to);
    } else if (t.stored != 0) {
      unpack_blocks(t, format, rows, to);
    } else {
      unpack_block(t, format, rows, to);
    }
    rows.at += file_block;
    to.d += n_blocks * scale_bytes(t);
    to.dmin += n_blocks * scale_bytes(t);
    to.block += n_blocks * block_bytes(t);
  }
}

// Padding, between sections and for rows beyond the matrix, is zeros.
void clear_padding(DType type, int64_t cols, size_t valid, std::byte* out) noexcept {
  const size_t bytes = tile_bytes(type, cols);
  const quant::Traits* t = quant::find_traits(type);
  if (valid < kRows) {
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
  const auto left = static_cast<size_t>(rows - tile * kTileRows);
  const SourceRows here = {source + static_cast<size_t>(tile * kTileRows) * row_bytes, row_bytes,
                           std::min(kRows, left)};
  const NextTile next(here.at + here.n * row_bytes, std::min(kRows, left - here.n) * row_bytes);
  clear_padding(type, cols, here.n, out);
  const auto n_cols = static_cast<size_t>(cols);
  if (type == DType::kF32) return pack_floats(here, n_cols, sizeof(float), next, out);
  if (type == DType::kF16) return pack_floats(here, n_cols, sizeof(uint16_t), next, out);
  if (type == DType::kBF16) return pack_pairs(here, n_cols, next, out);
  const quant::Traits* traits = quant::find_traits(type);
  const quant::Format* format = quant::find_format(type);
  if (traits == nullptr || format == nullptr) return;
  pack_blocks(*traits, *format, here, cols, next, out);
}

}  // namespace gen::engine::cpu
