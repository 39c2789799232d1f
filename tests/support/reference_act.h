// SPDX-License-Identifier: Apache-2.0
// Activation functions (engine/activation.h) by their definitions, in double precision.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/activation.h"

namespace gen::test {

inline double reference_act(const engine::Activation& activation, double x) {
  switch (activation.kind) {
    case engine::Act::kNone:
      return x;
    case engine::Act::kSilu:
      return x / (1.0 + std::exp(-x));
    case engine::Act::kGelu:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case engine::Act::kRelu2:
      return x > 0 ? x * x : 0.0;
    case engine::Act::kClampedSwiglu:
    case engine::Act::kCutSwiglu:
      break;
    case engine::Act::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    case engine::Act::kScaled:
      return static_cast<double>(activation.alpha) * x;
    case engine::Act::kSoftCapped: {
      const auto limit = static_cast<double>(activation.limit);
      return limit * std::tanh(static_cast<double>(activation.alpha) * x / limit);
    }
    case engine::Act::kSigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case engine::Act::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case engine::Act::kXielu: {
      const auto beta = static_cast<double>(activation.beta);
      if (x > 0) return static_cast<double>(activation.alpha) * x * x + beta * x;
      const double curve = std::expm1(std::min(x, static_cast<double>(activation.limit))) - x;
      return static_cast<double>(activation.gamma) * curve + beta * x;
    }
  }
  return NAN;
}
inline double reference_gated(const engine::Activation& activation, double gate, double up) {
  if (!engine::is_gated_only(activation.kind)) return reference_act(activation, gate) * up;
  const auto alpha = static_cast<double>(activation.alpha);
  const auto limit = static_cast<double>(activation.limit);
  if (activation.kind == engine::Act::kCutSwiglu) {
    return std::min(gate / (1.0 + std::exp(-gate)), limit) * std::clamp(up, -limit, limit);
  }
  const double g = std::min(gate, limit);
  return g / (1.0 + std::exp(-alpha * g)) * (std::clamp(up, -limit, limit) + 1.0);
}

}  // namespace gen::test
