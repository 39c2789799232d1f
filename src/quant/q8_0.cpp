// SPDX-License-Identifier: Apache-2.0
// Reference codec of Q8_0. The quotient uses the scale as stored, so that its rounding to binary16
// costs no precision. See q8_0.h.
#include "quant/q8_0.h"

#include <cmath>

#include "quant/k_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

Q8_0Block round_with(const float* x, float scale) {
  Q8_0Block block;
  block.d = scale_to_f16(scale);
  const float inverse = inverse_or_zero(f16_to_f32(block.d));
  for (int i = 0; i < 32; ++i) {
    block.q[i] = static_cast<int8_t>(round_within(x[i] * inverse, -127, 127));
  }
  return block;
}

double error_of(const Q8_0Block& block, const float* x, const float* importance) {
  double sum = 0.0;
  for (int i = 0; i < 32; ++i) {
    const double off = double{f16_to_f32(block.d)} * block.q[i] - double{x[i]};
    sum += double{importance[i]} * off * off;
  }
  return sum;
}

Q8_0Block encode_block(const float* x, const float* importance) {
  const Q8_0Block full = round_with(x, largest_magnitude(x, 32) / 127.0F);
  if (importance == nullptr) return full;
  // It is for levels from -128 on, of which this type's products have no use.
  const float fitted = std::fabs(fit_scale(*find_traits(DType::kQ8_0), x, importance, 32));
  const Q8_0Block trial = round_with(x, fitted);
  return error_of(trial, x, importance) < error_of(full, x, importance) ? trial : full;
}

}  // namespace

void unpack_q8_0(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Q8_0Block>(bytes);
  parts.d = block.d;
  for (int i = 0; i < 32; ++i) parts.codes[i] = static_cast<uint8_t>(block.q[i] + 128);
}

void encode_q8_0(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 32, encode_block);
}

}  // namespace gen::quant
