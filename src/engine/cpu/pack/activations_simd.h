// SPDX-License-Identifier: Apache-2.0
// The scale of a block, shared by the scalar and the SIMD quantisers. See activations.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/cpu/pack/activations.h"
#include "tensor/half.h"

namespace gen::engine::cpu {

struct QuantScale {
  float scale;
  float inverse;  // 0 where all q are 0
};

inline constexpr uint32_t kInfinityBits = 0x7F800000u;

/// From the bits of the largest magnitude, which are those of a NaN if there is one.
inline QuantScale q8_scale(uint32_t amax_bits) noexcept {
  if (amax_bits >= kInfinityBits) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
  const float amax = std::bit_cast<float>(amax_bits);
  const float wanted = amax / 127.0F;
  const float scale = f16_to_f32(f32_to_f16(std::min(wanted, 65504.0F)));
  // Dividing by the unrounded scale keeps the largest value at 127. A scale that lost many bits to
  // gradual underflow, or was clamped, must be used as it is.
  if (wanted >= 0x1p-14F && wanted <= 65504.0F) return {scale, 127.0F / amax};
  return {scale, scale > 0.0F ? 1.0F / scale : 0.0F};
}

inline QuantScale q8k_scale(uint32_t amax_bits) noexcept {
  if (amax_bits >= kInfinityBits) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
  const float amax = std::bit_cast<float>(amax_bits);
  const float scale = amax / 127.0F;
  // Below 2^-120 the inverse nears infinity; such a block is as good as zero.
  if (scale < 0x1p-120F) return {0.0F, 0.0F};
  return {scale, 127.0F / amax};
}

/// Null for levels without SIMD quantisers.
const ActivationKernels* activation_kernels_simd(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
