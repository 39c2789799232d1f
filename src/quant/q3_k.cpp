// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q3_K. See q3_k.h.
#include "quant/q3_k.h"

#include "quant/k_fit.h"
#include "quant/packing.h"

namespace gen::quant {
namespace {

Q3_KBlock encode_block(const float* x, const float* importance) {
  BlockParts parts;
  fit_signed(*find_traits(DType::kQ3_K), 32, x, importance, parts);
  Q3_KBlock block = {};
  block.d = parts.d;
  for (int s = 0; s < 16; ++s) {
    const int scale = parts.scales[s] + 32;
    uint8_t& low = block.scales[s % 8];
    low = static_cast<uint8_t>(low | ((scale & 15) << (s / 8 * 4)));
    uint8_t& high = block.scales[8 + s % 4];
    high = static_cast<uint8_t>(high | ((scale >> 4) << (s / 4 * 2)));
  }
  for (int half = 0; half < 2; ++half) {
    pack_quarters(parts.codes + 128 * half, 0, block.low + 32 * half);
  }
  for (int i = 0; i < 256; ++i) {
    uint8_t& high = block.high[i % 32];
    high = static_cast<uint8_t>(high | ((parts.codes[i] >> 2) << (i / 32)));
  }
  return block;
}

}  // namespace

void unpack_q3_k(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q3_KBlock>(bytes);
  parts.d = block.d;
  for (int s = 0; s < 16; ++s) {
    const int low = (block.scales[s % 8] >> (s / 8 * 4)) & 15;
    const int high = (block.scales[8 + s % 4] >> (s / 4 * 2)) & 3;
    parts.scales[s] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
  for (int g = 0; g < 8; ++g) {
    for (int i = 0; i < 32; ++i) {
      parts.codes[32 * g + i] = static_cast<uint8_t>(((block.high[i] >> g) & 1) << 2);
    }
  }
  for (int half = 0; half < 2; ++half) {
    add_quarters(block.low + 32 * half, 0, parts.codes + 128 * half);
  }
}

void encode_q3_k(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_block);
}

}  // namespace gen::quant
