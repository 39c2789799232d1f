// SPDX-License-Identifier: Apache-2.0
// Reference codec of IQ4_NL. See iq4_nl.h.
#include "quant/iq4_nl.h"

#include "quant/k_fit.h"
#include "quant/packing.h"

namespace gen::quant {
namespace {

Iq4NlBlock encode_block(const float* x, const float* importance) {
  constexpr Traits kTrait = *find_traits(DType::kIQ4_NL);
  Iq4NlBlock block;
  uint8_t codes[32];
  block.d = fit_codes(kTrait, x, importance, 32, codes);
  pack_halves(codes, 16, block.qs);
  return block;
}

}  // namespace

void unpack_iq4_nl(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq4NlBlock>(bytes);
  parts.d = block.d;
  unpack_halves(block.qs, 16, parts.codes);
}

void encode_iq4_nl(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 32, encode_block);
}

}  // namespace gen::quant
