// SPDX-License-Identifier: Apache-2.0
// See ternary.h.
#include "quant/ternary.h"

#include <algorithm>

#include "quant/level_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"
#include "quant/shares.h"
#include "tensor/half.h"

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

// The scale of 256 weights, as binary16, and their codes.
uint16_t fit_ternary(const float* x, const float* importance, uint8_t* codes) {
  float shares[256];
  shares_by_size(x, importance, 256, shares);
  const uint16_t d = scale_to_f16(walk_scales(x, shares, 256, 1));
  for (int i = 0; i < 256; ++i) codes[i] = nearest_level(x[i], f16_to_f32(d), 1);
  return d;
}

// The inverse of put_digits: the least fraction that is not below that of the digits.
void pack_digits(const uint8_t* codes, int count, int digits, uint8_t* bytes) {
  for (int i = 0; i < count; ++i) {
    int value = 0;
    for (int digit = 0; digit < 5; ++digit) {
      value = 3 * value + (digit < digits ? codes[count * digit + i] : 0);
    }
    bytes[i] = static_cast<uint8_t>((256 * value + 242) / 243);
  }
}

Tq1Block encode_tq1(const float* x, const float* importance) {
  uint8_t codes[256];
  Tq1Block block;
  block.d = fit_ternary(x, importance, codes);
  pack_digits(codes, 32, 5, block.qs);
  pack_digits(codes + 160, 16, 5, block.qs + 32);
  pack_digits(codes + 240, 4, 4, block.qh);
  return block;
}

Tq2Block encode_tq2(const float* x, const float* importance) {
  uint8_t codes[256];
  Tq2Block block;
  block.d = fit_ternary(x, importance, codes);
  for (int half = 0; half < 2; ++half) pack_quarters(codes + 128 * half, 0, block.qs + 32 * half);
  return block;
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

void encode_tq1_0(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_tq1);
}

void encode_tq2_0(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_tq2);
}

}  // namespace gen::quant
