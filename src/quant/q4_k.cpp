// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q4_K. See q4_k.h.
#include "quant/q4_k.h"

#include "quant/k_fit.h"
#include "quant/packing.h"

namespace gen::quant {
namespace {

Q4_KBlock encode_block(const float* x, const float* importance) {
  BlockParts parts;
  fit_with_minima(*find_traits(DType::kQ4_K), 63, x, importance, parts);
  Q4_KBlock block;
  block.d = parts.d;
  block.dmin = parts.dmin;
  pack_scale_mins(parts, block.scales);
  for (int pair = 0; pair < 4; ++pair) {
    pack_halves(parts.codes + 64 * pair, 32, block.qs + 32 * pair);
  }
  return block;
}

}  // namespace

ScaleMin q4_k_scale_min(const uint8_t* packed, int s) noexcept {
  if (s < 4) {
    return {static_cast<uint8_t>(packed[s] & 63), static_cast<uint8_t>(packed[s + 4] & 63)};
  }
  return {static_cast<uint8_t>((packed[s + 4] & 15) | ((packed[s - 4] >> 6) << 4)),
          static_cast<uint8_t>((packed[s + 4] >> 4) | ((packed[s] >> 6) << 4))};
}

void unpack_scale_mins(const uint8_t* packed, BlockParts& parts) noexcept {
  for (int s = 0; s < 8; ++s) {
    const ScaleMin run = q4_k_scale_min(packed, s);
    parts.scales[s] = static_cast<int8_t>(run.scale);
    parts.minima[s] = run.minimum;
  }
}

void pack_scale_mins(const BlockParts& parts, uint8_t* packed) noexcept {
  for (int j = 0; j < 4; ++j) {
    const int scale = parts.scales[4 + j];
    const int minimum = parts.minima[4 + j];
    packed[j] = static_cast<uint8_t>(parts.scales[j] | ((scale >> 4) << 6));
    packed[4 + j] = static_cast<uint8_t>(parts.minima[j] | ((minimum >> 4) << 6));
    packed[8 + j] = static_cast<uint8_t>((scale & 15) | ((minimum & 15) << 4));
  }
}

void unpack_q4_k(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q4_KBlock>(bytes);
  parts.d = block.d;
  parts.dmin = block.dmin;
  unpack_scale_mins(block.scales, parts);
  for (int pair = 0; pair < 4; ++pair) {
    unpack_halves(block.qs + 32 * pair, 32, parts.codes + 64 * pair);
  }
}

void encode_q4_k(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_block);
}

}  // namespace gen::quant
