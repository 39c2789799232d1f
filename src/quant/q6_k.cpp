// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q6_K. See q6_k.h.
#include "quant/q6_k.h"

#include <algorithm>

#include "quant/k_fit.h"
#include "quant/packing.h"

namespace gen::quant {
namespace {

Q6_KBlock encode_block(const float* x, const float* importance) {
  BlockParts parts;
  fit_signed(*find_traits(DType::kQ6_K), 128, x, importance, parts);
  Q6_KBlock block;
  block.d = parts.d;
  std::copy_n(parts.scales, 16, block.scales);
  for (int half = 0; half < 2; ++half) {
    pack_halves(parts.codes + 128 * half, 64, block.low + 64 * half);
    pack_quarters(parts.codes + 128 * half, 4, block.high + 32 * half);
  }
  return block;
}

}  // namespace

void unpack_q6_k(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q6_KBlock>(bytes);
  parts.d = block.d;
  std::copy_n(block.scales, 16, parts.scales);
  for (int half = 0; half < 2; ++half) {
    unpack_halves(block.low + 64 * half, 64, parts.codes + 128 * half);
    add_quarters(block.high + 32 * half, 4, parts.codes + 128 * half);
  }
}

void encode_q6_k(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 256, encode_block);
}

}  // namespace gen::quant
