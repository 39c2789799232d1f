// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/math.cuh.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tensor/half.h"

namespace gen::cuda::device {

inline float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
inline double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
inline float divide(float a, float b) { return a / b; }
inline float square_root(float x) { return std::sqrt(x); }
inline float round_even(float x) { return std::nearbyint(x); }
inline float floor_of(float x) { return std::floor(x); }
inline float magnitude(float x) { return std::fabs(x); }
inline float least(float a, float b) { return std::fmin(a, b); }
inline float greatest(float a, float b) { return std::fmax(a, b); }

inline uint32_t float_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline float float_from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint64_t double_bits(double x) { return std::bit_cast<uint64_t>(x); }
inline double double_from_bits(uint64_t bits) { return std::bit_cast<double>(bits); }

using gen::bf16_to_f32;
using gen::f16_to_f32;
using gen::f32_to_bf16;
using gen::f32_to_f16;
inline uint32_t pack_f16(float low, float high) {
  return f32_to_f16(low) | static_cast<uint32_t>(f32_to_f16(high)) << 16;
}
inline uint32_t pack_bf16(float low, float high) {
  return f32_to_bf16(low) | static_cast<uint32_t>(f32_to_bf16(high)) << 16;
}

template <typename A>
int32_t add_byte_products(uint32_t a, uint32_t b, int32_t c) {
  auto sum = static_cast<uint32_t>(c);  // wraps
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<uint32_t>(static_cast<A>(a >> i) * static_cast<int8_t>(b >> i));
  }
  return static_cast<int32_t>(sum);
}
inline int32_t dp4a(int32_t a, int32_t b, int32_t c) {
  return add_byte_products<int8_t>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), c);
}
inline int32_t dp4a(uint32_t a, int32_t b, int32_t c) {
  return add_byte_products<uint8_t>(a, static_cast<uint32_t>(b), c);
}

inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t which) {
  const uint64_t both = (static_cast<uint64_t>(b) << 32) | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    out |= static_cast<uint32_t>((both >> (8 * ((which >> (4 * i)) & 7))) & 0xFF) << (8 * i);
  }
  return out;
}

inline int population(uint32_t bits) { return std::popcount(bits); }
inline int leading_zeros(uint32_t bits) { return std::countl_zero(bits); }
inline int lowest_bit(uint32_t bits) { return bits == 0 ? -1 : std::countr_zero(bits); }

}  // namespace gen::cuda::device
