// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q4_1. See q4_1.h.
#include "quant/q4_1.h"

#include "quant/k_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"

namespace gen::quant {
namespace {

Q4_1Block encode_block(const float* x, const float* importance) {
  uint8_t codes[32];
  Q4_1Block block;
  if (importance == nullptr) {
    round_between(x, 15, &block.d, &block.m, codes);
  } else {
    fit_between(x, importance, 15, &block.d, &block.m, codes);
  }
  pack_halves(codes, 16, block.qs);
  return block;
}

}  // namespace

void unpack_q4_1(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q4_1Block>(bytes);
  parts.d = block.d;
  parts.dmin = block.m;
  unpack_halves(block.qs, 16, parts.codes);
}

void encode_q4_1(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 32, encode_block);
}

}  // namespace gen::quant
