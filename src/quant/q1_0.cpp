// SPDX-License-Identifier: Apache-2.0
// See q1_0.h.
#include "quant/q1_0.h"

#include <algorithm>
#include <cmath>

#include "quant/packing.h"
#include "quant/rounding.h"
#include "quant/shares.h"
#include "quant/spread.h"

namespace gen::quant {
namespace {

Q1_0Block encode_block(const float* x, const float* importance) {
  float shares[128];
  shares_by_size(x, importance, 128, shares);
  double sum = 0.0;
  double total = 0.0;
  for (int i = 0; i < 128; ++i) {
    sum += double{shares[i]} * std::fabs(double{x[i]});
    total += double{shares[i]};
  }
  Q1_0Block block = {};
  block.d = scale_to_f16(static_cast<float>(sum / total));
  for (int i = 0; i < 128; ++i) {
    const int bit = x[i] < 0.0F ? 0 : 1;
    block.qs[i / 8] = static_cast<uint8_t>(block.qs[i / 8] | (bit << (i % 8)));
  }
  return block;
}

}  // namespace

void unpack_q1_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q1_0Block>(bytes);
  std::fill_n(parts.run_d, 4, block.d);
  for (int i = 0; i < 16; ++i) store_codes(spread_bits(block.qs[i]), parts.codes + 8 * i);
}

void encode_q1_0(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 128, encode_block);
}

}  // namespace gen::quant
