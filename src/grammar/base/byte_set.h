// SPDX-License-Identifier: Apache-2.0
// ByteSet: a set of byte values in four words.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gen::grammar {

struct ByteSet {
  std::array<uint64_t, 4> words{};

  static ByteSet range(uint32_t low, uint32_t high) noexcept {
    ByteSet set;
    for (uint32_t i = low / 64; i <= high / 64 && low <= high; ++i) {
      set.words[i] = ~uint64_t{0};
      if (i == low / 64) set.words[i] &= ~uint64_t{0} << (low % 64);
      if (i == high / 64) set.words[i] &= ~uint64_t{0} >> (63 - high % 64);
    }
    return set;
  }
  static ByteSet one(uint8_t byte) noexcept { return range(byte, byte); }

  void add(uint8_t byte) noexcept { words[byte >> 6] |= uint64_t{1} << (byte & 63); }
  void add(const ByteSet& other) noexcept {
    for (size_t i = 0; i < 4; ++i) words[i] |= other.words[i];
  }
  void remove(uint8_t byte) noexcept { words[byte >> 6] &= ~(uint64_t{1} << (byte & 63)); }
  [[nodiscard]] bool has(uint8_t byte) const noexcept {
    return ((words[byte >> 6] >> (byte & 63)) & 1) != 0;
  }
  [[nodiscard]] bool empty() const noexcept {
    return (words[0] | words[1] | words[2] | words[3]) == 0;
  }
  [[nodiscard]] int count() const noexcept {
    int sum = 0;
    for (const uint64_t word : words) sum += std::popcount(word);
    return sum;
  }
  bool operator==(const ByteSet&) const noexcept = default;
};

}  // namespace gen::grammar
