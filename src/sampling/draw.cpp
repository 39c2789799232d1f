// SPDX-License-Identifier: Apache-2.0
// See draw.h.
#include "sampling/draw.h"

namespace gen::sampling {

int32_t draw(std::span<const Candidate> candidates, double uniform) noexcept {
  double total = 0.0;
  for (const Candidate& one : candidates) total += one.weight;
  const double target = uniform * total;
  double mass = 0.0;
  int32_t last = -1;
  for (const Candidate& one : candidates) {
    if (one.weight > 0.0) last = one.token;
    mass += one.weight;
    if (mass > target) return one.token;
  }
  return last;
}

}  // namespace gen::sampling
