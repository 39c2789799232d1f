// SPDX-License-Identifier: Apache-2.0
// Activation functions as data: the function and its parameters. A new one is a value of Act, a
// body in cpu/simd/activation-inl.h and an entry in each table indexed by Act: two in
// cpu/elementwise/elementwise-inl.h, two in cpu/linear/linear_float-inl.h. One that exists in gated
// form only is also listed in is_gated_only.
#pragma once

#include <cstdint>

namespace gen::engine {

enum class Act : uint8_t {
  kNone,           // x; gated: gate * up
  kSilu,           // x / (1 + e^-x)
  kGelu,           // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  kRelu2,          // max(x, 0)^2
  kClampedSwiglu,  // gated only: g / (1 + e^(-alpha g)) * (u + 1), g = min(gate, limit) and u = up
                   // cut to [-limit, limit]
  kScaled,         // alpha x
  kSoftCapped,     // limit tanh(alpha x / limit)
  kSigmoid,        // 1 / (1 + e^-x)
  kGeluErf,        // x / 2 * (1 + erf(x / sqrt(2)))
  kXielu,          // alpha x^2 + beta x above 0; gamma (e^min(x, limit) - 1 - x) + beta x elsewhere
  kSoftplus,       // ln(1 + e^x)
  kCutSwiglu,  // gated only: min(gate / (1 + e^-gate), limit) * u, u = up cut to [-limit, limit]
};
inline constexpr int32_t kActs = 12;

constexpr bool is_gated_only(Act act) noexcept {
  return act == Act::kClampedSwiglu || act == Act::kCutSwiglu;
}

/// act(x), or act(gate) * up where it is gated.
struct Activation {
  Act kind = Act::kNone;
  float alpha = 1.0F;  // alpha and limit: only from kClampedSwiglu on
  float limit = 0.0F;
  float beta = 0.0F;  // beta and gamma: kXielu only
  float gamma = 0.0F;
  friend bool operator==(const Activation&, const Activation&) = default;
};

}  // namespace gen::engine
