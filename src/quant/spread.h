// SPDX-License-Identifier: Apache-2.0
// Bits of a codebook entry or of signs to a byte each. For the types with codebooks.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace gen::quant {

/// Bit i to byte i.
constexpr uint64_t spread_bits(uint64_t x) noexcept {
  x = (x | (x << 28)) & 0x0000000F0000000FU;
  x = (x | (x << 14)) & 0x0003000300030003U;
  return (x | (x << 7)) & 0x0101010101010101U;
}

/// Bits 2 i and 2 i + 1 to byte i.
constexpr uint64_t spread_pairs(uint64_t x) noexcept {
  x = (x | (x << 24)) & 0x000000FF000000FFU;
  x = (x | (x << 12)) & 0x000F000F000F000FU;
  return (x | (x << 6)) & 0x0303030303030303U;
}

/// Bits 3 i to 3 i + 2 of 24 to byte i.
constexpr uint64_t spread_threes(uint64_t x) noexcept {
  x = (x | (x << 20)) & 0x00000FFF00000FFFU;
  x = (x | (x << 10)) & 0x003F003F003F003FU;
  return (x | (x << 5)) & 0x0707070707070707U;
}

/// Eight signs of which seven are stored: the eighth makes the number of set bits even.
constexpr uint64_t even_signs(uint32_t seven) noexcept {
  return seven | ((static_cast<uint32_t>(std::popcount(seven)) & 1U) << 7);
}

/// Scales of types with codebooks are odd.
constexpr int8_t odd_scale(int s) noexcept { return static_cast<int8_t>(2 * s + 1); }

/// Writes the bytes of x, the lowest first.
inline void store_codes(uint64_t x, uint8_t* codes) noexcept { std::memcpy(codes, &x, sizeof(x)); }

}  // namespace gen::quant
