// SPDX-License-Identifier: Apache-2.0
// Arithmetic whose bits are the CPU's: one rounding each, to nearest even, subnormals kept. Device
// code is compiled with -fmad=false and without fast-math, so only multiply_add() is fused. There
// is no exp, sin or cos here on purpose: ours are written with these functions.
#pragma once

#include <cstdint>

#include "cuda/device/qualifiers.cuh"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/math.h"
#else

namespace gen::cuda::device {

GEN_DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
GEN_DEVICE double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
GEN_DEVICE float divide(float a, float b) { return __fdiv_rn(a, b); }
GEN_DEVICE float square_root(float x) { return __fsqrt_rn(x); }
/// To the nearest integer, ties to even.
GEN_DEVICE float round_even(float x) { return rintf(x); }
GEN_DEVICE float floor_of(float x) { return floorf(x); }
GEN_DEVICE float magnitude(float x) { return fabsf(x); }
/// If one operand is NaN, the other is returned, as with std::fmin and std::fmax.
GEN_DEVICE float least(float a, float b) { return fminf(a, b); }
GEN_DEVICE float greatest(float a, float b) { return fmaxf(a, b); }

GEN_DEVICE uint32_t float_bits(float x) { return __float_as_uint(x); }
GEN_DEVICE float float_from_bits(uint32_t bits) { return __uint_as_float(bits); }
GEN_DEVICE uint64_t double_bits(double x) { return static_cast<uint64_t>(__double_as_longlong(x)); }
GEN_DEVICE double double_from_bits(uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

/// Conversions as in tensor/half.h, except for the payload of a widened NaN.
GEN_DEVICE float f16_to_f32(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
GEN_DEVICE uint16_t f32_to_f16(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  const uint32_t whole = __float_as_uint(value);
  const bool nan = (whole & 0x7FFFFFFFu) > 0x7F800000u;
  return nan ? static_cast<uint16_t>(((whole >> 16) & 0x8000u) | 0x7E00u) : bits;
}
GEN_DEVICE float bf16_to_f32(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
GEN_DEVICE uint16_t f32_to_bf16(float value) {
  const uint32_t bits = __float_as_uint(value);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const uint32_t rounded = bits + 0x7FFFu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded >> 16);
}

/// Packs two 16-bit floats, the first in the low half; the payload of NaN is undefined.
GEN_DEVICE uint32_t pack_f16(float low, float high) {
#if GEN_CUDA_ARCH >= 800
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return f32_to_f16(low) | static_cast<uint32_t>(f32_to_f16(high)) << 16;
#endif
}
GEN_DEVICE uint32_t pack_bf16(float low, float high) {
#if GEN_CUDA_ARCH >= 800
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return f32_to_bf16(low) | static_cast<uint32_t>(f32_to_bf16(high)) << 16;
#endif
}

/// c plus the products of four bytes, signed by signed and unsigned by signed.
GEN_DEVICE int32_t dp4a(int32_t a, int32_t b, int32_t c) { return __dp4a(a, b, c); }
GEN_DEVICE int32_t dp4a(uint32_t a, int32_t b, int32_t c) {
  int32_t d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

/// Byte permutation (__byte_perm): byte i of the result is selected from the eight bytes of b and
/// a, lowest of a first, by bits 4 i … 4 i + 2 of `which`; bits 4 i + 3 must be 0.
GEN_DEVICE uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t which) {
  return __byte_perm(a, b, which);
}

GEN_DEVICE int population(uint32_t bits) { return __popc(bits); }
/// The number of leading zeros; 32 for 0.
GEN_DEVICE int leading_zeros(uint32_t bits) { return __clz(static_cast<int>(bits)); }
/// The index of the lowest set bit; -1 for 0.
GEN_DEVICE int lowest_bit(uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }

}  // namespace gen::cuda::device
#endif
