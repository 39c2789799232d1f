// SPDX-License-Identifier: Apache-2.0
// See nvfp4.h.
#include "quant/nvfp4.h"

#include <cmath>

#include "quant/packing.h"
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

}  // namespace

void unpack_nvfp4(const std::byte* bytes, BlockParts& parts) {
  const auto block = load_block<Nvfp4Block>(bytes);
  for (int run = 0; run < 4; ++run) {
    parts.run_d[run] = half_scale(block.scales[run]);
    unpack_halves(block.qs + 8 * run, 8, parts.codes + 16 * run);
  }
}

}  // namespace gen::quant
