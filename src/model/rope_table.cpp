// SPDX-License-Identifier: Apache-2.0
// The formulas of rope_table.h.
#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gen::model {
namespace {

/// The divisor of a frequency by the llama3 rule.
double llama3_divisor(double frequency, const RopeParams& params) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(params.original_context);
  if (wavelength < original / params.high_freq_factor) return 1.0;
  if (wavelength > original / params.low_freq_factor) return params.factor;
  const double smooth = (original / wavelength - params.low_freq_factor) /
                        (params.high_freq_factor - params.low_freq_factor);
  return 1.0 / ((1.0 - smooth) / params.factor + smooth);
}

/// The (fractional) pair whose frequency turns `turns` times within the original context.
double yarn_pair(double turns, const RopeParams& params) {
  const auto original = static_cast<double>(params.original_context);
  return static_cast<double>(params.n_dims) *
         std::log(original / (turns * 2.0 * std::numbers::pi)) / (2.0 * std::log(params.base));
}

/// How much of pair i keeps its frequency: 1 for fast pairs, 0 for slow ones.
double yarn_mix(int32_t i, const RopeParams& params) {
  const double low = std::max(0.0, std::floor(yarn_pair(params.yarn_beta_fast, params)));
  const double high = std::min(static_cast<double>(params.n_dims - 1),
                               std::ceil(yarn_pair(params.yarn_beta_slow, params)));
  const double ramp = (static_cast<double>(i) - low) / std::max(0.001, high - low);
  return params.yarn_ext_factor * (1.0 - std::clamp(ramp, 0.0, 1.0));
}

}  // namespace

graph::RopeSpec make_rope_table(const RopeParams& params, std::span<const float> factors) {
  graph::RopeSpec spec;
  spec.kind = params.kind;
  spec.n_dims = params.n_dims;
  double magnitude = params.attn_factor;
  if (params.scaling == RopeScaling::kYarn && params.yarn_ext_factor != 0.0 &&
      params.factor > 1.0) {
    // With a multiplier for all dimensions the quotient of both remains.
    const double log = 0.1 * std::log(params.factor);
    magnitude *= (1.0 + log) / (1.0 + log * params.yarn_log_multiplier);
  }
  spec.magnitude = static_cast<float>(magnitude);
  for (int32_t i = 0; i < params.n_dims / 2; ++i) {
    double frequency = std::pow(params.base, -2.0 * i / params.n_dims);
    if (!factors.empty()) frequency /= static_cast<double>(factors[static_cast<size_t>(i)]);
    switch (params.scaling) {
      case RopeScaling::kNone:
        break;
      case RopeScaling::kLinear:
        frequency /= params.factor;
        break;
      case RopeScaling::kLlama3:
        if (factors.empty()) frequency /= llama3_divisor(frequency, params);
        break;
      case RopeScaling::kYarn: {
        const double mix = yarn_mix(i, params);
        frequency *= (1.0 - mix) / params.factor + mix;
        break;
      }
    }
    spec.inv_freq.push_back(static_cast<float>(frequency));
  }
  return spec;
}

}  // namespace gen::model
