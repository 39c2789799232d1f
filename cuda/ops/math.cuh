// SPDX-License-Identifier: Apache-2.0
// Mathematics of the kernels, from IEEE operations and written-out fused multiply-adds only, so
// that every device and the emulator give the same bits: exp, tanh, activations, sums over sixteen
// virtual lanes, sine and cosine of rope angles. The formulas and the order of operations are those
// of engine/cpu/simd/math-inl.h, activation-inl.h and rope_sincos.cpp, so that the CPU engine is an
// oracle to the bit.
//   Error   exp below 2 ulp, 2^x of weights below 2.5 ulp, sine and cosine below 3e-16 absolute.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/ops/device.cuh"
#include "engine/activation.h"
#include "engine/rope/sincos_series.h"

namespace gen::cuda {

constexpr float kLog2E = 1.44269504F;
/// Adding and subtracting it rounds a float below 2^22 to the nearest integer, ties to even.
constexpr float kRoundMagic = 12582912.0F;  // 1.5 * 2^23
/// The same, with the exponent bias of a float in its low bits.
constexpr float kRoundMagicBiased = 12583039.0F;  // 1.5 * 2^23 + 127

GEN_DEVICE float minus_infinity() { return float_from_bits(0xFF800000U); }

/// Returns the second operand if one is NaN.
GEN_DEVICE float max_of(float a, float b) { return a > b ? a : b; }
GEN_DEVICE float min_of(float a, float b) { return a < b ? a : b; }

/// e^x = first * second * (1 + rest): 2^k in two factors, since k reaches -150.
struct Exponent {
  float first;
  float second;
  float rest;
};
GEN_DEVICE Exponent exponent_of(float x) {
  const float shifted = multiply_add(x, 1.44269504F, kRoundMagic);
  const float k = shifted - kRoundMagic;
  float r = multiply_add(k, -0.693147182F, x);
  r = multiply_add(k, 1.90465421e-9F, r);
  float p = 0.00139261840F;
  p = multiply_add(p, r, 0.00836317893F);
  p = multiply_add(p, r, 0.0416665561F);
  p = multiply_add(p, r, 0.166665763F);
  p = multiply_add(p, r, 0.5F);
  const float rest = multiply_add(r * r, p, r);
  const int32_t n =
      static_cast<int32_t>(float_bits(shifted)) - static_cast<int32_t>(float_bits(kRoundMagic));
  const int32_t half = n >> 1;
  const float first = float_from_bits(static_cast<uint32_t>(half + 127) << 23);
  const float second = float_from_bits(static_cast<uint32_t>(n - half + 127) << 23);
  return {first, second, rest};
}

/// e^x: gradual underflow, 0 from -104 down, infinity above 88.73, NaN stays NaN.
GEN_DEVICE float exp_of(float x) {
  x = min_of(89.0F, x);
  x = max_of(-104.0F, x);
  const Exponent of = exponent_of(x);
  return (of.rest + 1.0F) * of.first * of.second;
}

/// 2^x for x <= 0: weights of a softmax. 1 at 0, 0 below -125, NaN stays NaN.
GEN_DEVICE float exp2_weight(float x) {
  const float shifted = x + kRoundMagicBiased;
  const float r = x - (shifted - kRoundMagicBiased);
  float p = 0.00132647273F;
  p = multiply_add(p, r, 0.00967151299F);
  p = multiply_add(p, r, 0.0555073358F);
  p = multiply_add(p, r, 0.240222424F);
  p = multiply_add(p, r, 0.693147004F);
  p = multiply_add(p, r, 1.0F);
  const float value = p * float_from_bits(float_bits(shifted) << 23);
  return x < -125.0F ? 0.0F : value;
}

GEN_DEVICE float tanh_of(float x) {
  const float size = float_from_bits(float_bits(x) & 0x7FFFFFFFU);
  const float y = x * x;
  float p = 0.00226950180F;
  p = multiply_add(p, y, -0.00832318701F);
  p = multiply_add(p, y, 0.0217625033F);
  p = multiply_add(p, y, -0.0539584607F);
  p = multiply_add(p, y, 0.133332998F);
  p = multiply_add(p, y, -0.333333343F);
  const float small = multiply_add(x * y, p, x);
  const float large = 1.0F - 2.0F / (exp_of(size + size) + 1.0F);
  const float value = size < 0.625F ? small : large;
  return float_from_bits((float_bits(value) & 0x7FFFFFFFU) | (float_bits(x) & 0x80000000U));
}

/// e^x - 1 for x <= 0.
GEN_DEVICE float expm1_negative(float x) {
  x = max_of(-104.0F, x);
  const Exponent of = exponent_of(x);
  const float power = of.first * of.second;
  return multiply_add(of.rest, power, power - 1.0F);
}

/// ln(1 + e^x).
GEN_DEVICE float softplus(float x) {
  const float u = exp_of(0.0F - float_from_bits(float_bits(x) & 0x7FFFFFFFU));
  const float z = u / (u + 2.0F);
  const float y = z * z;
  float p = 0.153846154F;
  p = multiply_add(p, y, 0.181818182F);
  p = multiply_add(p, y, 0.222222222F);
  p = multiply_add(p, y, 0.285714286F);
  p = multiply_add(p, y, 0.4F);
  p = multiply_add(p, y, 0.666666667F);
  const float tail = z + multiply_add(z * y, p, z);
  return max_of(0.0F, x) + tail;
}

/// The standard normal distribution at -t for t in [0, 14.5].
GEN_DEVICE float normal_tail(float t) {
  const float u = (t - 3.0F) / (t + 3.0F);
  float p = 6.39010236e-5F;
  p = multiply_add(p, u, -7.73407863e-6F);
  p = multiply_add(p, u, -0.000710370635F);
  p = multiply_add(p, u, -0.000337739252F);
  p = multiply_add(p, u, 0.00463695349F);
  p = multiply_add(p, u, 0.000429306113F);
  p = multiply_add(p, u, -0.0346802017F);
  p = multiply_add(p, u, 0.0830147877F);
  p = multiply_add(p, u, -0.0742803590F);
  p = multiply_add(p, u, -0.0510147284F);
  p = multiply_add(p, u, 0.637053973F);
  const float square = t * t;
  const float rounded_off = multiply_add(t, t, 0.0F - square);
  const float power = exp_of(-0.5F * square);
  const float scaled = p / multiply_add(t, 1.41421356F, 1.0F);
  return scaled * multiply_add(rounded_off, -0.5F, 1.0F) * power;
}

GEN_DEVICE float gelu_erf(float x) {
  const float near = max_of(-14.5F, min_of(14.5F, x));
  const float part = near * normal_tail(float_from_bits(float_bits(near) & 0x7FFFFFFFU));
  return 0.0F < x ? x - part : part;
}

GEN_DEVICE float xielu(const engine::Activation& activation, float x) {
  const float above = x * multiply_add(activation.alpha, x, activation.beta);
  const float curve = expm1_negative(min_of(activation.limit, x)) - x;
  const float below = multiply_add(activation.beta, x, activation.gamma * curve);
  return 0.0F < x ? above : below;
}

/// act(x); of what is gated only the factor of the up half. Several functions are x / (1 + e^z),
/// whose code is shared.
GEN_DEVICE float activated(const engine::Activation& activation, float x) {
  float z = 0.0F - x;
  switch (activation.kind) {
    case engine::Act::kNone:
      return x;
    case engine::Act::kRelu2:
      x = max_of(0.0F, x);
      return x * x;
    case engine::Act::kScaled:
      return activation.alpha * x;
    case engine::Act::kSoftCapped:
      return activation.limit * tanh_of(activation.alpha * x / activation.limit);
    case engine::Act::kGeluErf:
      return gelu_erf(x);
    case engine::Act::kXielu:
      return xielu(activation, x);
    case engine::Act::kSoftplus:
      return softplus(x);
    case engine::Act::kSilu:
    case engine::Act::kCutSwiglu:
      break;
    case engine::Act::kSigmoid:
      x = 1.0F;
      break;
    case engine::Act::kGelu:
      z = 0.0F - x * multiply_add(x * x, 0.0713548163F, 1.59576912F);
      break;
    case engine::Act::kClampedSwiglu:
      x = min_of(activation.limit, x);
      z = -activation.alpha * x;
      break;
  }
  return x / (1.0F + exp_of(z));
}

/// act(gate) * up.
GEN_DEVICE float gated(const engine::Activation& activation, float gate, float up) {
  if (activation.kind == engine::Act::kClampedSwiglu) {
    up = max_of(-activation.limit, min_of(activation.limit, up)) + 1.0F;
  }
  float factor = activated(activation, gate);
  if (activation.kind == engine::Act::kCutSwiglu) {
    up = max_of(-activation.limit, min_of(activation.limit, up));
    factor = min_of(activation.limit, factor);
  }
  return factor * up;
}

/// Sine and cosine of x in double; NaN for |x| above 2^32 and what is not finite. How: see
/// engine/rope/sincos_series.h.
GEN_DEVICE void sincos_of(double x, double* sine, double* cosine) {
  if (!(x <= engine::kLargestAngle && x >= -engine::kLargestAngle)) {
    *sine = *cosine = static_cast<double>(float_from_bits(0x7FC00000U));
    return;
  }
  const double quarter = x * engine::kTwoOverPi;
  const auto turns = static_cast<int64_t>(quarter < 0.0 ? quarter - 0.5 : quarter + 0.5);
  const auto n = static_cast<double>(turns);
  const double r = multiply_add(-n, engine::kHalfPiLow, multiply_add(-n, engine::kHalfPiHigh, x));
  const double s = engine::sine_series(r);
  const double c = engine::cosine_series(r);
  const auto quadrant = static_cast<int32_t>(turns & 3);
  const double a = quadrant % 2 == 0 ? s : c;
  const double b = quadrant % 2 == 0 ? c : s;
  *sine = quadrant < 2 ? a : -a;
  *cosine = quadrant == 0 || quadrant == 3 ? b : -b;
}

/// Pair `pair` of a row of rope angles, see rope_angles.cu.
GEN_DEVICE void write_angle(const float* inv_freq, int32_t position, float magnitude, int32_t pair,
                            float* row) {
  double sine = 0.0;
  double cosine = 0.0;
  sincos_of(static_cast<double>(position) * static_cast<double>(inv_freq[pair]), &sine, &cosine);
  row[2 * pair] = static_cast<float>(cosine * static_cast<double>(magnitude));
  row[2 * pair + 1] = static_cast<float>(sine * static_cast<double>(magnitude));
}

/// The sum over each sixteen adjacent lanes, added as (i, i + 8), (i, i + 4), (i, i + 2),
/// (i, i + 1). All lanes of the warp take part; lanes 0 to 15 get the sum of theirs.
GEN_DEVICE float sum_sixteen(float x) {
  x = x + shuffle_xor(x, 8);
  x = x + shuffle_xor(x, 4);
  x = x + shuffle_xor(x, 2);
  return x + shuffle_xor(x, 1);
}

}  // namespace gen::cuda
