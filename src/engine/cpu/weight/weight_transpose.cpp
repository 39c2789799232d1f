// SPDX-License-Identifier: Apache-2.0
// Transposes 4 by 4 words or 8 by 8 half words in registers, and the remainder element by element.
// A few rows at a time over all columns: rows of many models are 4 KiB apart, where sixteen rows
// would evict each other from the L1 cache. Uses the compilers' vector extensions, since the
// baseline of every processor suffices and Highway's targets begin above that of x86. See
// weight_transpose.h.
#include "engine/cpu/weight/weight_transpose.h"

#include <bit>
#include <cstring>

namespace gen::engine::cpu {
namespace {

using Halves = uint16_t __attribute__((vector_size(16)));
using Words = uint32_t __attribute__((vector_size(16)));
using Longs = uint64_t __attribute__((vector_size(16)));

constexpr size_t kTransposedRows = 16;

Words load(const std::byte* from) noexcept {
  Words v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
void store(Words v, std::byte* to) noexcept { std::memcpy(to, &v, sizeof(v)); }

// Interleaves the lower or upper halves of two registers.
Words low_halves(Words a, Words b) noexcept {
  return std::bit_cast<Words>(__builtin_shufflevector(
      std::bit_cast<Halves>(a), std::bit_cast<Halves>(b), 0, 8, 1, 9, 2, 10, 3, 11));
}
Words high_halves(Words a, Words b) noexcept {
  return std::bit_cast<Words>(__builtin_shufflevector(
      std::bit_cast<Halves>(a), std::bit_cast<Halves>(b), 4, 12, 5, 13, 6, 14, 7, 15));
}
Words low_words(Words a, Words b) noexcept { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
Words high_words(Words a, Words b) noexcept { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
Words low_longs(Words a, Words b) noexcept {
  return std::bit_cast<Words>(
      __builtin_shufflevector(std::bit_cast<Longs>(a), std::bit_cast<Longs>(b), 0, 2));
}
Words high_longs(Words a, Words b) noexcept {
  return std::bit_cast<Words>(
      __builtin_shufflevector(std::bit_cast<Longs>(a), std::bit_cast<Longs>(b), 1, 3));
}

// Four words of four rows.
inline void square_of_words(const std::byte* from, size_t row_bytes, Words flip, std::byte* out) {
  const Words a = load(from);
  const Words b = load(from + row_bytes);
  const Words c = load(from + 2 * row_bytes);
  const Words d = load(from + 3 * row_bytes);
  const Words ab_0 = low_words(a, b);
  const Words ab_2 = high_words(a, b);
  const Words cd_0 = low_words(c, d);
  const Words cd_2 = high_words(c, d);
  store(low_longs(ab_0, cd_0) ^ flip, out);
  store(high_longs(ab_0, cd_0) ^ flip, out + 64);
  store(low_longs(ab_2, cd_2) ^ flip, out + 128);
  store(high_longs(ab_2, cd_2) ^ flip, out + 192);
}

// Eight half words of eight rows.
inline void square_of_halves(const std::byte* from, size_t row_bytes, std::byte* out) {
  Words pairs[8];  // of rows 0 and 1, 2 and 3, …: the first four elements, the last four
  for (size_t i = 0; i < 4; ++i) {
    const Words a = load(from + 2 * i * row_bytes);
    const Words b = load(from + (2 * i + 1) * row_bytes);
    pairs[2 * i] = low_halves(a, b);
    pairs[2 * i + 1] = high_halves(a, b);
  }
  for (size_t half = 0; half < 2; ++half, out += 128) {
    const Words low_0 = low_words(pairs[half], pairs[2 + half]);
    const Words low_2 = high_words(pairs[half], pairs[2 + half]);
    const Words high_0 = low_words(pairs[4 + half], pairs[6 + half]);
    const Words high_2 = high_words(pairs[4 + half], pairs[6 + half]);
    store(low_longs(low_0, high_0), out);
    store(high_longs(low_0, high_0), out + 32);
    store(low_longs(low_2, high_2), out + 64);
    store(high_longs(low_2, high_2), out + 96);
  }
}

}  // namespace

void transpose_words(const std::byte* from, size_t row_bytes, size_t rows, size_t n_words,
                     uint32_t flip, std::byte* out) noexcept {
  const Words flips = {flip, flip, flip, flip};
  const size_t squares = rows == kTransposedRows ? n_words / 4 : 0;
  for (size_t r = 0; squares > 0 && r < kTransposedRows; r += 4) {
    const std::byte* at = from + r * row_bytes;
    for (size_t i = 0; i < squares; ++i, at += 16) {
      square_of_words(at, row_bytes, flips, out + i * 256 + r * 4);
    }
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t w = squares * 4; w < n_words; ++w) {
      uint32_t word = 0;
      std::memcpy(&word, from + r * row_bytes + w * 4, sizeof(word));
      word ^= flip;
      std::memcpy(out + w * 64 + r * 4, &word, sizeof(word));
    }
  }
}

void transpose_halves(const std::byte* from, size_t row_bytes, size_t rows, size_t n,
                      std::byte* out) noexcept {
  const size_t squares = rows == kTransposedRows ? n / 8 : 0;
  for (size_t r = 0; squares > 0 && r < kTransposedRows; r += 8) {
    const std::byte* at = from + r * row_bytes;
    for (size_t i = 0; i < squares; ++i, at += 16) {
      square_of_halves(at, row_bytes, out + i * 256 + r * 2);
    }
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = squares * 8; c < n; ++c) {
      std::memcpy(out + c * 32 + r * 2, from + r * row_bytes + c * 2, 2);
    }
  }
}

}  // namespace gen::engine::cpu
