// SPDX-License-Identifier: Apache-2.0
// Reference codec of IQ4_NL. See iq4_nl.h.
#include "quant/iq4_nl.h"

#include "quant/k_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"

namespace gen::quant {
namespace {

Iq4NlBlock encode_block(const float* x) {
  constexpr Traits kTrait = *find_traits(DType::kIQ4_NL);
  Iq4NlBlock block;
  block.d = scale_to_f16(fit_scale(kTrait, x, 32));
  const float inverse = inverse_or_zero(f16_to_f32(block.d));
  uint8_t codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = nearest_code(kTrait, x[i] * inverse);
  pack_halves(codes, 16, block.qs);
  return block;
}

}  // namespace

void unpack_iq4_nl(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq4NlBlock>(bytes);
  parts.d = block.d;
  unpack_halves(block.qs, 16, parts.codes);
}

void encode_iq4_nl(const float* x, std::byte* blocks, int64_t n) {
  encode_blocks(x, blocks, n, 32, encode_block);
}

}  // namespace gen::quant
