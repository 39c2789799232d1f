// SPDX-License-Identifier: Apache-2.0
// The decoder of every quantised type: the formula of traits.h over a block taken apart. Products
// and sums are rounded to float32 one by one, in the order in which traits.h writes them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "quant/traits.h"
#include "tensor/half.h"

namespace gen::quant {

/// code -> level.
constexpr int level_of(const Traits& traits, int code) noexcept {
  const uint8_t* const values = table_values(traits.table);
  return (values != nullptr ? values[code] : code) - traits.zero;
}

/// 2^(exponent - 128), exact for all 256; the two smallest are subnormal.
constexpr float e8m0_to_f32(int exponent) noexcept {
  const uint32_t bits =
      exponent < 2 ? 0x00200000u << exponent : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

/// The float value of a block's d or dmin.
constexpr float scale_to_f32(const Traits& traits, uint16_t d) noexcept {
  if (traits.scale == ScaleKind::kE8M0) return e8m0_to_f32(d & 255);
  return f16_to_f32(d) * unit_of(traits);
}

/// Writes n floats, n being a multiple of the type's stored block. kUnpack is the type's.
template <DType kType, size_t kBytes, void (*kUnpack)(const std::byte*, BlockParts&)>
void decode_blocks(const std::byte* blocks, float* out, int64_t n) {
  constexpr Traits kTrait = *find_traits(kType);
  constexpr int kStored = stored_block(kTrait);
  BlockParts parts;
  for (; n > 0; n -= kStored, blocks += kBytes, out += kStored) {
    kUnpack(blocks, parts);
    const float d = kTrait.stored == 0 ? scale_to_f32(kTrait, parts.d) : 0.0F;
    const float dmin = kTrait.minima ? scale_to_f32(kTrait, parts.dmin) : 0.0F;
    for (int run = 0; run < kStored / kTrait.run; ++run) {
      float scale = d;
      float minimum = dmin;
      if constexpr (kTrait.stored != 0) scale = scale_to_f32(kTrait, parts.run_d[run]);
      if constexpr (kTrait.block == 256) {
        scale = d * static_cast<float>(parts.scales[run]);
        minimum = dmin * static_cast<float>(parts.minima[run]);
      }
      for (int i = run * kTrait.run; i < (run + 1) * kTrait.run; ++i) {
        const float product = scale * static_cast<float>(level_of(kTrait, parts.codes[i]));
        if constexpr (!kTrait.minima) {
          out[i] = product;
        } else if constexpr (kTrait.block == 256) {
          out[i] = product - minimum;
        } else {
          out[i] = product + minimum;
        }
      }
    }
  }
}

}  // namespace gen::quant
