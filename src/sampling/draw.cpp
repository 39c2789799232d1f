// SPDX-License-Identifier: Apache-2.0
// See draw.h.
#include "sampling/draw.h"

#include "base/mass.h"

namespace gen::sampling {

int32_t draw_in_slice(std::span<const Candidate> candidates, double before,
                      double target) noexcept {
  double mass = before;
  int32_t last = -1;
  for (const Candidate& one : candidates) {
    if (one.weight > 0.0) last = one.token;
    mass += one.weight;
    if (mass > target) return one.token;
  }
  return last;
}

int32_t draw(std::span<const Candidate> candidates, double uniform) noexcept {
  MassSum all;
  for (const Candidate& one : candidates) all.add(one.token, one.weight);
  const double target = uniform * all.total();
  double before = 0.0;
  int32_t last = -1;
  for (size_t begin = 0; begin < candidates.size();) {
    const int32_t slice = candidates[begin].token / kMassSlice;
    MassLanes lanes;
    size_t end = begin;
    for (; end < candidates.size() && candidates[end].token / kMassSlice == slice; ++end) {
      lanes.add(static_cast<size_t>(candidates[end].token), candidates[end].weight);
      if (candidates[end].weight > 0.0) last = candidates[end].token;
    }
    const double sum = lanes.take();
    const auto some = candidates.subspan(begin, end - begin);
    if (before + sum > target) return draw_in_slice(some, before, target);
    before += sum;
    begin = end;
  }
  return last;
}

}  // namespace gen::sampling
