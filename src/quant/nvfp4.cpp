// SPDX-License-Identifier: Apache-2.0
// See nvfp4.h.
#include "quant/nvfp4.h"

#include <algorithm>
#include <cmath>

#include "quant/decode.h"
#include "quant/k_fit.h"
#include "quant/packing.h"
#include "quant/rounding.h"
#include "quant/shares.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

// Half the scale in binary16, which holds all of them exactly: 2^-10 to 240.
uint16_t half_scale(int bits) noexcept {
  if (bits == 0x7F) return 0;
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  if (exponent != 0) return static_cast<uint16_t>(((exponent - 8 + 15) << 10) | (mantissa << 7));
  return f32_to_f16(std::ldexp(static_cast<float>(mantissa), -10));
}

constexpr Traits kTrait = *find_traits(DType::kMXFP4);  // of the same codes and levels

// Rounds 16 weights with a scale; returns the squared error, or any larger number than `limit`.
double round_run(float scale, const float* x, const float* shares, double limit, uint8_t* codes) {
  const float inverse = inverse_or_zero(scale);
  double error = 0.0;
  for (int i = 0; i < 16 && error <= limit; ++i) {
    codes[i] = nearest_code(kTrait, x[i] * inverse);
    const double miss = double{scale} * level_of(kTrait, codes[i]) - double{x[i]};
    error += double{shares[i]} * (miss * miss);
  }
  return error;
}

Nvfp4Block encode_block(const float* x, const float* importance) {
  Nvfp4Block block = {};
  for (int run = 0; run < 4; ++run, x += 16) {
    float shares[16];
    shares_of(importance, 16, shares);
    if (importance != nullptr) importance += 16;
    uint8_t codes[16] = {};
    double least = round_run(0.0F, x, shares, HUGE_VAL, codes);
    for (int bits = 0x7E; bits > 0 && least > 0.0; --bits) {
      uint8_t trial[16];
      const double error = round_run(f16_to_f32(half_scale(bits)), x, shares, least, trial);
      if (error >= least) continue;
      least = error;
      block.scales[run] = static_cast<uint8_t>(bits);
      std::copy_n(trial, 16, codes);
    }
    pack_halves(codes, 8, block.qs + 8 * run);
  }
  return block;
}

}  // namespace

void unpack_nvfp4(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Nvfp4Block>(bytes);
  for (int run = 0; run < 4; ++run) {
    parts.run_d[run] = half_scale(block.scales[run]);
    unpack_halves(block.qs + 8 * run, 8, parts.codes + 16 * run);
  }
}

void encode_nvfp4(const float* x, const float* importance, std::byte* blocks, int64_t n) {
  encode_blocks(x, importance, blocks, n, 64, encode_block);
}

}  // namespace gen::quant
