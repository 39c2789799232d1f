// SPDX-License-Identifier: Apache-2.0
// Activation functions on sixteen lanes (engine/activation.h), and tables of kernels by Act. Each
// has one body, so that a product's epilogue and the elementwise operation give the same bits.

#if defined(GEN_ENGINE_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ACTIVATION_INL_H_
#undef GEN_ENGINE_CPU_ACTIVATION_INL_H_
#else
#define GEN_ENGINE_CPU_ACTIVATION_INL_H_
#endif

#include "engine/activation.h"
#include "engine/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

/// The tanh form as x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3): one exponential, and no
/// cancellation for x far below 0.
template <typename V>
HWY_INLINE V gelu(V x) {
  using L = LanesOf<V>;
  constexpr float kTwice = 1.59576912F;         // 2 sqrt(2 / pi)
  constexpr float kTwiceCubic = 0.0713548163F;  // that times 0.044715
  const V square = mul(x, x);
  const V u = mul(x, fma(square, L::splat(kTwiceCubic), L::splat(kTwice)));
  return div(x, add(L::splat(1.0F), exp(sub(L::splat(0.0F), u))));
}

/// Uses the tail of the distribution, so that there is no cancellation for x far below 0.
template <typename V>
HWY_INLINE V gelu_erf(V x) {
  using L = LanesOf<V>;
  const V near = max(L::splat(-14.5F), min(L::splat(14.5F), x));  // beyond, the tail is 0
  const V part = mul(near, normal_tail(abs(near)));
  return if_less(L::splat(0.0F), x, sub(x, part), part);
}

template <typename V>
HWY_INLINE V xielu(V x, const Activation& activation) {
  using L = LanesOf<V>;
  const V above = mul(x, fma(L::splat(activation.alpha), x, L::splat(activation.beta)));
  const V curve = sub(expm1_negative(min(L::splat(activation.limit), x)), x);
  const V below = fma(L::splat(activation.beta), x, mul(L::splat(activation.gamma), curve));
  return if_less(L::splat(0.0F), x, above, below);
}

template <Act kAct, typename V>
HWY_INLINE V activated(V x, [[maybe_unused]] const Activation& activation) {
  using L = LanesOf<V>;
  static_assert(!is_gated_only(kAct), "is gated only");
  if constexpr (kAct == Act::kSilu) return silu(x);
  if constexpr (kAct == Act::kGelu) return gelu(x);
  if constexpr (kAct == Act::kRelu2) {
    const V positive = max(L::splat(0.0F), x);  // a NaN in x stays
    return mul(positive, positive);
  }
  if constexpr (kAct == Act::kScaled) return mul(L::splat(activation.alpha), x);
  if constexpr (kAct == Act::kSoftCapped) {
    const V limit = L::splat(activation.limit);
    return mul(limit, tanh(div(mul(L::splat(activation.alpha), x), limit)));
  }
  if constexpr (kAct == Act::kSigmoid) {
    const V one = L::splat(1.0F);
    return div(one, add(one, exp(sub(L::splat(0.0F), x))));
  }
  if constexpr (kAct == Act::kGeluErf) return gelu_erf(x);
  if constexpr (kAct == Act::kXielu) return xielu(x, activation);
  if constexpr (kAct == Act::kSoftplus) return softplus(x);
  if constexpr (kAct == Act::kNone) return x;
}

template <Act kAct, typename V>
HWY_INLINE V gated(V gate, V up, const Activation& activation) {
  using L = LanesOf<V>;
  if constexpr (kAct == Act::kClampedSwiglu) {
    const V limit = L::splat(activation.limit);
    const V one = L::splat(1.0F);
    const V g = min(limit, gate);
    const V u = max(L::splat(-activation.limit), min(limit, up));
    const V e = exp(mul(L::splat(-activation.alpha), g));
    return mul(div(g, add(one, e)), add(u, one));
  } else if constexpr (kAct == Act::kCutSwiglu) {
    const V limit = L::splat(activation.limit);
    const V u = max(L::splat(-activation.limit), min(limit, up));
    return mul(min(limit, silu(gate)), u);
  } else {
    return mul(activated<kAct>(gate, activation), up);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ACTIVATION_INL_H_
