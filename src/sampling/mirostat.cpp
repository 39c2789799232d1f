// SPDX-License-Identifier: Apache-2.0
// See mirostat.h.
#include "sampling/mirostat.h"

#include <algorithm>

#include "base/portable_math.h"

namespace gen::sampling {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

double total_of(std::span<const Candidate> candidates) noexcept {
  double total = 0.0;
  for (const Candidate& one : candidates) total += one.weight;
  return total;
}

}  // namespace

Mirostat::Mirostat(const SamplingParams& params) noexcept {
  const double tau = params.mirostat_tau;
  const double eta = params.mirostat_eta;
  if (!(tau > 0.0 && tau <= kMaxMirostatTau && eta >= 0.0 && eta <= 1.0)) return;
  tau_ = tau;
  eta_ = eta;
  bar_ = 2.0 * tau;
}

void Mirostat::cut(std::vector<Candidate>* candidates) const {
  const auto best = std::min_element(candidates->begin(), candidates->end(), more_probable);
  const int32_t kept = best->token;
  // Below 0 bits there is no token, and at 0 only a certain one.
  const bool only_best = bar_ <= 0.0;
  const double least = only_best ? 0.0 : total_of(*candidates) * portable_exp(-bar_ * kLn2);
  std::erase_if(*candidates, [&](const Candidate& one) {
    return one.token != kept && (only_best || one.weight < least || !(one.weight > 0.0));
  });
}

void Mirostat::drawn(int32_t token, std::span<const Candidate> candidates) noexcept {
  const auto at = std::find_if(candidates.begin(), candidates.end(),
                               [&](const Candidate& one) { return one.token == token; });
  // Weights are normal numbers; their quotient may not be.
  const double surprise = (portable_log(total_of(candidates)) - portable_log(at->weight)) / kLn2;
  bar_ -= eta_ * (surprise - tau_);
}

}  // namespace gen::sampling
