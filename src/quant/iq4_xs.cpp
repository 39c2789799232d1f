// SPDX-License-Identifier: Apache-2.0
// Reference codec of IQ4_XS. See iq4_xs.h.
#include "quant/iq4_xs.h"

#include "quant/k_fit.h"
#include "quant/packing.h"

namespace gen::quant {
namespace {

Iq4XsBlock encode_block(const float* x, const float* importance) {
  BlockParts parts;
  fit_signed(*find_traits(DType::kIQ4_XS), 32, x, importance, parts);
  Iq4XsBlock block = {};
  block.d = parts.d;
  for (int s = 0; s < 8; ++s) {
    const int scale = parts.scales[s] + 32;
    uint8_t& low = block.scales_low[s / 2];
    low = static_cast<uint8_t>(low | ((scale & 15) << (s % 2 * 4)));
    block.scales_high = static_cast<uint16_t>(block.scales_high | ((scale >> 4) << (2 * s)));
    pack_halves(parts.codes + 32 * s, 16, block.qs + 16 * s);
  }
  return block;
}

}  // namespace

void unpack_iq4_xs(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Iq4XsBlock>(bytes);
  parts.d = block.d;
  for (int s = 0; s < 8; ++s) {
    const int low = (block.scales_low[s / 2] >> (s % 2 * 4)) & 15;
    const int high = (block.scales_high >> (2 * s)) & 3;
    parts.scales[s] = static_cast<int8_t>((low | (high << 4)) - 32);
    unpack_halves(block.qs + 16 * s, 16, parts.codes + 32 * s);
  }
}

void encode_iq4_xs(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_block);
}

}  // namespace gen::quant
