// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q5_K. See q5_k.h.
#include "quant/q5_k.h"

#include "quant/k_fit.h"
#include "quant/packing.h"
#include "quant/q4_k.h"

namespace gen::quant {
namespace {

Q5_KBlock encode_block(const float* x, const float* importance) {
  BlockParts parts;
  fit_with_minima(*find_traits(DType::kQ5_K), 63, x, importance, parts);
  Q5_KBlock block = {};
  block.d = parts.d;
  block.dmin = parts.dmin;
  pack_scale_mins(parts, block.scales);
  for (int pair = 0; pair < 4; ++pair) {
    pack_halves(parts.codes + 64 * pair, 32, block.qs + 32 * pair);
  }
  for (int i = 0; i < 256; ++i) {
    uint8_t& high = block.high[i % 32];
    high = static_cast<uint8_t>(high | ((parts.codes[i] >> 4) << (i / 32)));
  }
  return block;
}

}  // namespace

void unpack_q5_k(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q5_KBlock>(bytes);
  parts.d = block.d;
  parts.dmin = block.dmin;
  unpack_scale_mins(block.scales, parts);
  for (int pair = 0; pair < 4; ++pair) {
    unpack_halves(block.qs + 32 * pair, 32, parts.codes + 64 * pair);
  }
  for (int i = 0; i < 256; ++i) {
    const int high = (block.high[i % 32] >> (i / 32)) & 1;
    parts.codes[i] = static_cast<uint8_t>(parts.codes[i] | (high << 4));
  }
}

void encode_q5_k(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_block);
}

}  // namespace gen::quant
