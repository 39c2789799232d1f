// SPDX-License-Identifier: Apache-2.0
// See top_p.h.
#include "sampling/top_p.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/mass.h"
#include "sampling/mass_cut.h"
#include "base/portable_math.h"

namespace gen::sampling {

namespace {

double mass_of(const std::vector<Candidate>& candidates) noexcept {
  MassSum sum;
  for (const Candidate& one : candidates) sum.add(one.token, one.weight);
  return sum.total();
}

}  // namespace

void apply_top_p(double p, std::vector<Candidate>* candidates, std::vector<Candidate>* border) {
  apply_top_p(p, mass_of(*candidates), candidates, border);
}

void apply_top_p(double p, double mass, std::vector<Candidate>* candidates,
                 std::vector<Candidate>* border) {
  keep_best_mass(
      p * mass, [](const Candidate& one) { return std::bit_cast<uint64_t>(one.weight); },
      candidates, border);
}

void apply_min_p(double min_p, std::vector<Candidate>* candidates) {
  double best = 0.0;  // typical-p may have removed the one of weight 1
  for (const Candidate& one : *candidates) best = std::max(best, one.weight);
  std::erase_if(*candidates, [&](const Candidate& one) { return one.weight < min_p * best; });
}

float min_p_bar(double min_p, float max, double temperature) noexcept {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  if (!(min_p > std::numeric_limits<double>::min())) return kLowest;
  // A millionth covers the rounding here and in the weights many times over.
  const double log_min_p = portable_log(min_p);
  const double depth = temperature * (log_min_p - 1e-6 * (1.0 - log_min_p));
  const double bar = static_cast<double>(max) + depth;
  const double slack = 1e-6 * (std::abs(static_cast<double>(max)) - depth);
  if (!(bar - slack > static_cast<double>(std::numeric_limits<float>::lowest()))) return kLowest;
  return static_cast<float>(bar - slack);
}

}  // namespace gen::sampling
