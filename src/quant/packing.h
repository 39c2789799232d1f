// SPDX-License-Identifier: Apache-2.0
// Packing of codes of a few bits into bytes, as several types share it, and iteration over blocks.
// Blocks may be unaligned, so they are copied, never accessed through pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gen::quant {

template <typename Block>
Block load_block(const std::byte* from) noexcept {
  Block block;
  std::memcpy(&block, from, sizeof(block));
  return block;
}

/// Fills `blocks` with encode(x, importance), encode(x + elements, importance + elements), … for n
/// weights; importance may be null.
template <typename Block>
void encode_blocks(const float* x, const float* importance, std::byte* blocks, int64_t n,
                   int elements, Block (*encode)(const float* x, const float* importance)) {
  for (; n > 0; n -= elements, x += elements, blocks += sizeof(Block)) {
    const Block block = encode(x, importance);
    std::memcpy(blocks, &block, sizeof(block));
    if (importance != nullptr) importance += elements;
  }
}

/// Codes of 4 bits: byte i holds code i in its low half and code i + count in its high half.
inline void unpack_halves(const uint8_t* bytes, int count, uint8_t* codes) noexcept {
  for (int i = 0; i < count; ++i) {
    codes[i] = bytes[i] & 15;
    codes[i + count] = static_cast<uint8_t>(bytes[i] >> 4);
  }
}

/// The inverse; of codes of more bits, the low 4.
inline void pack_halves(const uint8_t* codes, int count, uint8_t* bytes) noexcept {
  for (int i = 0; i < count; ++i) {
    bytes[i] = static_cast<uint8_t>((codes[i] & 15) | ((codes[i + count] & 15) << 4));
  }
}

/// 128 codes of 2 bits in 32 bytes: byte i holds codes i, i + 32, i + 64 and i + 96, lowest bits
/// first. They are shifted left and added to what `codes` holds.
inline void add_quarters(const uint8_t* bytes, int shift, uint8_t* codes) noexcept {
  for (int g = 0; g < 4; ++g) {
    for (int i = 0; i < 32; ++i) {
      codes[32 * g + i] =
          static_cast<uint8_t>(codes[32 * g + i] | (((bytes[i] >> (2 * g)) & 3) << shift));
    }
  }
}

/// The inverse: takes the 2 bits above `shift` of each code.
inline void pack_quarters(const uint8_t* codes, int shift, uint8_t* bytes) noexcept {
  for (int i = 0; i < 32; ++i) {
    int byte = 0;
    for (int g = 0; g < 4; ++g) byte |= ((codes[32 * g + i] >> shift) & 3) << (2 * g);
    bytes[i] = static_cast<uint8_t>(byte);
  }
}

/// 32 fifth bits in 4 bytes: bit i belongs to code i.
inline void add_fifth_bits(const uint8_t* bytes, uint8_t* codes) noexcept {
  for (int i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(codes[i] | (((bytes[i / 8] >> (i % 8)) & 1) << 4));
  }
}

inline void pack_fifth_bits(const uint8_t* codes, uint8_t* bytes) noexcept {
  for (int i = 0; i < 4; ++i) bytes[i] = 0;
  for (int i = 0; i < 32; ++i) {
    bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | ((codes[i] >> 4) << (i % 8)));
  }
}

}  // namespace gen::quant
