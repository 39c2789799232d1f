// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q2_K. See q2_k.h.
#include "quant/q2_k.h"

#include <algorithm>

#include "quant/k_fit.h"
#include "quant/packing.h"

namespace gen::quant {
namespace {

Q2_KBlock encode_block(const float* x, const float* importance) {
  BlockParts parts;
  fit_with_minima(*find_traits(DType::kQ2_K), 15, x, importance, parts);
  Q2_KBlock block;
  block.d = parts.d;
  block.dmin = parts.dmin;
  for (int s = 0; s < 16; ++s) {
    block.scales[s] = static_cast<uint8_t>(parts.scales[s] | (parts.minima[s] << 4));
  }
  for (int half = 0; half < 2; ++half) {
    pack_quarters(parts.codes + 128 * half, 0, block.qs + 32 * half);
  }
  return block;
}

}  // namespace

void unpack_q2_k(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q2_KBlock>(bytes);
  parts.d = block.d;
  parts.dmin = block.dmin;
  for (int s = 0; s < 16; ++s) {
    parts.scales[s] = static_cast<int8_t>(block.scales[s] & 15);
    parts.minima[s] = static_cast<uint8_t>(block.scales[s] >> 4);
  }
  std::fill_n(parts.codes, 256, uint8_t{0});
  for (int half = 0; half < 2; ++half) {
    add_quarters(block.qs + 32 * half, 0, parts.codes + 128 * half);
  }
}

void encode_q2_k(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_block);
}

}  // namespace gen::quant
