// SPDX-License-Identifier: Apache-2.0
// exp, tanh, silu and the normal distribution on sixteen lanes from fused multiply-adds, additions
// and divisions only, so that every level gives the same bits. Coefficients are our own Chebyshev
// fits, rounded to float. Errors are measured in tests/engine/math_test.cpp. Read next:
// lanes-inl.h.

#if defined(GEN_ENGINE_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_MATH_INL_H_
#undef GEN_ENGINE_CPU_MATH_INL_H_
#else
#define GEN_ENGINE_CPU_MATH_INL_H_
#endif

#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// e^x = 2^k (1 + rest(x, k)) with k the nearest integer to x / ln 2: with r = x - k ln 2,
/// e^r - 1 = r + r^2 P(r).
template <typename V>
HWY_INLINE V exp_rest(V x, V k) {
  using L = LanesOf<V>;
  V r = fma(k, L::splat(-0.693147182F), x);
  r = fma(k, L::splat(1.90465421e-9F), r);
  V p = L::splat(0.00139261840F);
  p = fma(p, r, L::splat(0.00836317893F));
  p = fma(p, r, L::splat(0.0416665561F));
  p = fma(p, r, L::splat(0.166665763F));
  p = fma(p, r, L::splat(0.5F));
  return fma(mul(r, r), p, r);
}

/// e^x, error below 2 ulp, gradual underflow, exactly 0 from -104 down, infinity above 88.73, NaN
/// stays NaN. 2^k comes in two factors, since k reaches -150.
template <typename V>
HWY_INLINE V exp(V x) {
  using L = LanesOf<V>;
  // The bound is the first operand, so that a NaN in x is kept.
  x = min(L::splat(89.0F), x);
  x = max(L::splat(-104.0F), x);
  const V shifted = fma(x, L::splat(1.44269504F), L::splat(kRoundMagic));
  const V rest = exp_rest(x, sub(shifted, L::splat(kRoundMagic)));
  V first;
  V second;
  exp2_halves(shifted, &first, &second);
  return mul(mul(add(rest, L::splat(1.0F)), first), second);
}

/// 2^x for x <= 0, error below 2.5 ulp, 1 at 0, 0 below -125, NaN stays NaN: the weights of a
/// softmax, where what is smaller than 1e-37 of the largest adds nothing. 2^x = 2^k (1 + r P(r))
/// with k the nearest integer and r = x - k.
template <typename V>
HWY_INLINE V exp2_weight(V x) {
  using L = LanesOf<V>;
  const V shifted = add(x, L::splat(kRoundMagicBiased));
  const V r = sub(x, sub(shifted, L::splat(kRoundMagicBiased)));
  V p = L::splat(0.00132647273F);
  p = fma(p, r, L::splat(0.00967151299F));
  p = fma(p, r, L::splat(0.0555073358F));
  p = fma(p, r, L::splat(0.240222424F));
  p = fma(p, r, L::splat(0.693147004F));
  p = fma(p, r, L::splat(1.0F));
  return zero_if_less(x, L::splat(-125.0F), mul(p, exponent_from_low_bits(shifted)));
}

/// tanh x: x + x^3 P(x^2) below 0.625, 1 - 2 / (e^2|x| + 1) above, the sign of x.
template <typename V>
HWY_INLINE V tanh(V x) {
  using L = LanesOf<V>;
  const V size = abs(x);
  const V y = mul(x, x);
  V p = L::splat(0.00226950180F);
  p = fma(p, y, L::splat(-0.00832318701F));
  p = fma(p, y, L::splat(0.0217625033F));
  p = fma(p, y, L::splat(-0.0539584607F));
  p = fma(p, y, L::splat(0.133332998F));
  p = fma(p, y, L::splat(-0.333333343F));
  const V small = fma(mul(x, y), p, x);
  const V large =
      sub(L::splat(1.0F), div(L::splat(2.0F), add(exp(add(size, size)), L::splat(1.0F))));
  return copy_sign(if_less(size, L::splat(0.625F), small, large), x);
}

/// x / (1 + e^-x)
template <typename V>
HWY_INLINE V silu(V x) {
  using L = LanesOf<V>;
  const V one = L::splat(1.0F);
  return div(x, add(one, exp(sub(L::splat(0.0F), x))));
}

/// e^x - 1 for x <= 0, error below 3 ulp, NaN stays NaN.
template <typename V>
HWY_INLINE V expm1_negative(V x) {
  using L = LanesOf<V>;
  x = max(L::splat(-104.0F), x);
  const V shifted = fma(x, L::splat(1.44269504F), L::splat(kRoundMagic));
  const V rest = exp_rest(x, sub(shifted, L::splat(kRoundMagic)));
  V first;
  V second;
  exp2_halves(shifted, &first, &second);
  const V power = mul(first, second);
  return fma(rest, power, sub(power, L::splat(1.0F)));
}

/// ln(1 + e^x), error below 3 ulp, 0 from -104 down, infinity stays infinity, NaN stays NaN:
/// max(x, 0) + ln(1 + u) with u = e^-|x|, which is 2 artanh(z) with z = u / (2 + u) <= 1/3.
template <typename V>
HWY_INLINE V softplus(V x) {
  using L = LanesOf<V>;
  const V zero = L::splat(0.0F);
  const V u = exp(sub(zero, abs(x)));
  const V z = div(u, add(u, L::splat(2.0F)));
  const V y = mul(z, z);
  V p = L::splat(0.153846154F);
  p = fma(p, y, L::splat(0.181818182F));
  p = fma(p, y, L::splat(0.222222222F));
  p = fma(p, y, L::splat(0.285714286F));
  p = fma(p, y, L::splat(0.4F));
  p = fma(p, y, L::splat(0.666666667F));
  const V tail = add(z, fma(mul(z, y), p, z));
  return add(max(zero, x), tail);
}

/// The standard normal distribution at -t for t in [0, 14.5], (1 + erf(-t / sqrt(2))) / 2, error
/// below 5 ulp, gradual underflow, 0 at 14.5, NaN stays NaN: e^(-t^2 / 2) P(u) / (1 + sqrt(2) t)
/// with u = (t - 3) / (t + 3). The exponential of the rounded square is corrected by a factor for
/// the rounding error.
template <typename V>
HWY_INLINE V normal_tail(V t) {
  using L = LanesOf<V>;
  const V u = div(sub(t, L::splat(3.0F)), add(t, L::splat(3.0F)));
  V p = L::splat(6.39010236e-5F);
  p = fma(p, u, L::splat(-7.73407863e-6F));
  p = fma(p, u, L::splat(-0.000710370635F));
  p = fma(p, u, L::splat(-0.000337739252F));
  p = fma(p, u, L::splat(0.00463695349F));
  p = fma(p, u, L::splat(0.000429306113F));
  p = fma(p, u, L::splat(-0.0346802017F));
  p = fma(p, u, L::splat(0.0830147877F));
  p = fma(p, u, L::splat(-0.0742803590F));
  p = fma(p, u, L::splat(-0.0510147284F));
  p = fma(p, u, L::splat(0.637053973F));
  const V square = mul(t, t);
  const V rounded_off = fma(t, t, sub(L::splat(0.0F), square));
  const V power = exp(mul(L::splat(-0.5F), square));
  const V scaled = div(p, fma(t, L::splat(1.41421356F), L::splat(1.0F)));
  return mul(mul(scaled, fma(rounded_off, L::splat(-0.5F), L::splat(1.0F))), power);
}

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_MATH_INL_H_
