// SPDX-License-Identifier: Apache-2.0
// See ternary.h.
#include "quant/ternary.h"

#include <algorithm>

#include "quant/packing.h"

namespace gen::quant {
namespace {

void put_digits(const uint8_t* bytes, int count, int digits, uint8_t* codes) noexcept {
  for (int i = 0; i < count; ++i) {
    int rest = bytes[i];
    for (int digit = 0; digit < digits; ++digit, rest = 3 * rest & 255) {
      codes[count * digit + i] = static_cast<uint8_t>(3 * rest >> 8);
    }
  }
}

void put_one_scale(uint16_t d, BlockParts& parts) noexcept {
  parts.d = d;
  std::fill_n(parts.scales, 8, int8_t{1});
}

}  // namespace

void unpack_tq1_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Tq1Block>(bytes);
  put_one_scale(block.d, parts);
  put_digits(block.qs, 32, 5, parts.codes);
  put_digits(block.qs + 32, 16, 5, parts.codes + 160);
  put_digits(block.qh, 4, 4, parts.codes + 240);
}

void unpack_tq2_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Tq2Block>(bytes);
  put_one_scale(block.d, parts);
  std::fill_n(parts.codes, 256, uint8_t{0});
  for (int half = 0; half < 2; ++half) {
    add_quarters(block.qs + 32 * half, 0, parts.codes + 128 * half);
  }
}

}  // namespace gen::quant
