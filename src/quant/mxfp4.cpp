// SPDX-License-Identifier: Apache-2.0
// Reference codec of MXFP4. See mxfp4.h.
#include "quant/mxfp4.h"

#include <algorithm>
#include <cmath>

#include "quant/decode.h"
#include "quant/k_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"
#include "quant/shares.h"

namespace gen::quant {
namespace {

constexpr Traits kTrait = *find_traits(DType::kMXFP4);
constexpr int kLower = 12;
constexpr int kLargestExponent = 252;  // level 12 means 1.5 * 2^127

// Rounds 32 weights with the scale of `exponent`; returns the squared error.
double round_with(int exponent, const float* x, const float* shares, uint8_t* codes) {
  const float scale = e8m0_to_f32(exponent);
  double error = 0.0;
  for (int i = 0; i < 32; ++i) {
    codes[i] = nearest_code(kTrait, x[i] / scale);
    const double miss = static_cast<double>(scale) * level_of(kTrait, codes[i]) - x[i];
    error += double{shares[i]} * (miss * miss);
  }
  return error;
}

Mxfp4Block encode_block(const float* x, const float* importance) {
  Mxfp4Block block = {};
  const float largest = largest_magnitude(x, 32);
  if (largest == 0.0F) return block;
  // 2^ilogb(largest) is level 8, so that the scale is 2^(ilogb(largest) - 3).
  const int exponent = std::max(std::ilogb(largest) - 3 + 128, 0);
  float shares[32];
  shares_of(importance, 32, shares);
  uint8_t codes[32];
  double least = round_with(exponent, x, shares, codes);
  block.e = static_cast<uint8_t>(exponent);
  pack_halves(codes, 16, block.qs);
  // Weights that count little may saturate, so that lower exponents are tried too if some do.
  const int lowest = importance != nullptr ? std::max(exponent - kLower, 0) : exponent;
  // A larger exponent than the largest would give infinities.
  for (int trial = std::min(exponent + 1, kLargestExponent); trial >= lowest; --trial) {
    if (trial == exponent) continue;
    const double error = round_with(trial, x, shares, codes);
    if (error >= least) continue;
    least = error;
    block.e = static_cast<uint8_t>(trial);
    pack_halves(codes, 16, block.qs);
  }
  return block;
}

}  // namespace

void unpack_mxfp4(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Mxfp4Block>(bytes);
  parts.d = block.e;
  unpack_halves(block.qs, 16, parts.codes);
}

void encode_mxfp4(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 32, encode_block);
}

}  // namespace gen::quant
