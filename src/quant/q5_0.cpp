// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q5_0. See q5_0.h.
#include "quant/q5_0.h"

#include "quant/k_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"

namespace gen::quant {
namespace {

Q5_0Block encode_block(const float* x, const float* importance) {
  uint8_t codes[32];
  Q5_0Block block;
  block.d = importance == nullptr ? round_signed(x, 16, codes)
                                  : fit_codes(*find_traits(DType::kQ5_0), x, importance, 32, codes);
  pack_fifth_bits(codes, block.qh);
  pack_halves(codes, 16, block.qs);
  return block;
}

}  // namespace

void unpack_q5_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q5_0Block>(bytes);
  parts.d = block.d;
  unpack_halves(block.qs, 16, parts.codes);
  add_fifth_bits(block.qh, parts.codes);
}

void encode_q5_0(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 32, encode_block);
}

}  // namespace gen::quant
