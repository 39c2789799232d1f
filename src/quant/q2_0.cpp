// SPDX-License-Identifier: Apache-2.0
// See q2_0.h.
#include "quant/q2_0.h"

#include <algorithm>

#include "quant/level_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"
#include "quant/shares.h"
#include "quant/spread.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

Q2_0Block encode_block(const float* x, const float* importance) {
  float shares[64];
  shares_by_size(x, importance, 64, shares);
  Q2_0Block block = {};
  block.d = scale_to_f16(walk_scales(x, shares, 64, 2));
  for (int i = 0; i < 64; ++i) {
    const int code = nearest_level(x[i], f16_to_f32(block.d), 2);
    block.qs[i / 4] = static_cast<uint8_t>(block.qs[i / 4] | (code << (i % 4 * 2)));
  }
  return block;
}

}  // namespace

void unpack_q2_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q2_0Block>(bytes);
  std::fill_n(parts.run_d, 2, block.d);
  for (int i = 0; i < 8; ++i) {
    const int sixteen = block.qs[2 * i] | (block.qs[2 * i + 1] << 8);
    store_codes(spread_pairs(static_cast<uint64_t>(sixteen)), parts.codes + 8 * i);
  }
}

void encode_q2_0(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 64, encode_block);
}

}  // namespace gen::quant
