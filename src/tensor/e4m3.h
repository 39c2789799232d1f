// SPDX-License-Identifier: Apache-2.0
// Scalar conversions between float32 and E4M3: one sign bit, four of exponent (bias 7), three of
// mantissa; no infinity. Rounds to nearest even with gradual underflow; values above 448, and NaN,
// become 448. The encoder therefore never produces 0x7F or 0xFF, which other readers treat as NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace gen {

inline constexpr float kE4m3Max = 448.0F;

constexpr uint8_t f32_to_e4m3(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x43E00000U) return static_cast<uint8_t>(sign | 0x7EU);  // above 448, or NaN
  if (magnitude < 0x3C800000U) {  // below 2^-6: the result counts units of 2^-9
    const float raised = std::bit_cast<float>(magnitude) * 0x1p9F + 0x1p23F;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(raised) & 0xFU));
  }
  const uint32_t odd = (magnitude >> 20) & 1U;
  return static_cast<uint8_t>(sign | (((magnitude + 0x7FFFFU + odd) >> 20) - 960U));
}

constexpr float e4m3_to_f32(uint8_t code) noexcept {
  const uint32_t magnitude = code & 0x7FU;
  const float value = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9F
                                    : std::bit_cast<float>((magnitude + 960U) << 20);
  return (code & 0x80U) != 0 ? -value : value;
}

}  // namespace gen
