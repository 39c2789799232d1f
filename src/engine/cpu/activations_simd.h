// SPDX-License-Identifier: Apache-2.0
// What the scalar and the fast quantisers share: the scale of a block. See activations.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/cpu/activations.h"
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
  const float wanted = std::min(std::bit_cast<float>(amax_bits) / 127.0F, 65504.0F);
  const float scale = f16_to_f32(f32_to_f16(wanted));
  return {scale, scale > 0.0F ? 1.0F / scale : 0.0F};
}

inline QuantScale q8k_scale(uint32_t amax_bits) noexcept {
  if (amax_bits >= kInfinityBits) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
  const float scale = std::bit_cast<float>(amax_bits) / 127.0F;
  // Below 2^-120 the inverse nears infinity; such a block is as good as zero.
  if (scale < 0x1p-120F) return {0.0F, 0.0F};
  return {scale, 1.0F / scale};
}

/// Null for a level without fast quantisers.
const ActivationKernels* activation_kernels_simd(CpuLevel level) noexcept;

}  // namespace gen::engine::cpu
