// SPDX-License-Identifier: Apache-2.0
// See typical_p.h. With x = (logit - max) / temperature the probability of a candidate is
// exp(x) / Z, its surprise log(Z) - x and the entropy log(Z) - mean(x): so surprise - entropy is
// mean(x) - x, and neither Z nor a logarithm is needed.
#include "sampling/typical_p.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "sampling/mass_cut.h"

namespace gen::sampling {

void apply_typical_p(double p, float max, double temperature, std::vector<Candidate>* candidates,
                     std::vector<Candidate>* border) {
  // A weight of 0 is never drawn, and its x may be infinite.
  std::erase_if(*candidates, [](const Candidate& one) { return !(one.weight > 0.0); });
  const auto x = [&](const Candidate& one) {
    return (static_cast<double>(one.logit) - static_cast<double>(max)) / temperature;
  };
  double total = 0.0;
  double moment = 0.0;
  for (const Candidate& one : *candidates) {
    total += one.weight;
    moment += one.weight * x(one);
  }
  // Distances from the mean as logits; those that are nearer than rounding can tell are equal.
  const double centre = static_cast<double>(max) + temperature * (moment / total);
  const double least = temperature * 0x1p-30;
  const auto nearness = [&](const Candidate& one) {
    const double distance = std::abs(static_cast<double>(one.logit) - centre);
    return ~std::bit_cast<uint64_t>(std::max(distance, least));
  };
  keep_best_mass(p * total, nearness, candidates, border);
}

}  // namespace gen::sampling
