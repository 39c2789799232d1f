// SPDX-License-Identifier: Apache-2.0
// See xtc.h.
#include "sampling/xtc.h"

#include <cstddef>

namespace gen::sampling {

void apply_xtc(double threshold, std::vector<Candidate>* candidates) {
  double total = 0.0;
  for (const Candidate& one : *candidates) total += one.weight;
  const double bar = threshold * total;
  const auto is_top = [&](const Candidate& one) { return one.weight > 0.0 && one.weight >= bar; };
  Candidate least;
  size_t tops = 0;
  for (const Candidate& one : *candidates) {
    if (!is_top(one)) continue;
    if (tops++ == 0 || more_probable(least, one)) least = one;
  }
  if (tops < 2) return;
  std::erase_if(*candidates,
                [&](const Candidate& one) { return is_top(one) && one.token != least.token; });
}

}  // namespace gen::sampling
